/**
 * `holdfast gateway keys`: virtual keys, changed through the running instance (G14). A key's value is read from a file
 * or standard input and written to standard output once; it is never an argument.
 */

import { z } from 'zod';
import { operatorName } from '../../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition, CommandFlag } from '../../../core/host/plugin/command.ts';
import { jsonText } from '../../../core/host/terminal.ts';
import { KEYS_PATH } from '../keys/operations.ts';
import { aboutOption, clearFlag, keyNamed, readKey, termFlags, termsOfFlags } from './key-flags.ts';
import { infoLines, listLines, shownKey } from './key-output.ts';
import { askGateway } from './target.ts';

const keyFile = {
  flags: '--key-file <file>',
  summary: 'the key is the one of this value (mode 0600, - for stdin)',
};

async function askKeys(
  verb: string,
  body: object,
  context: CommandContext,
): Promise<Readonly<Record<string, unknown>>> {
  try {
    return await askGateway(context, `${KEYS_PATH}/${verb}`, { by: operatorName(), ...body });
  } catch (error) {
    throw aboutOption(error, `gateway keys ${verb}`);
  }
}

const keyWithValue = shownKey.extend({ key: z.string() });
const keyPage = z.object({ keys: z.array(shownKey), total_count: z.number(), total_pages: z.number() });

/** Prints the value alone on standard output, so that it can be redirected into a file, and the rest as notes. */
function showOnce(answer: Readonly<Record<string, unknown>>, { json, print, note }: CommandContext): void {
  const { key, key_id, key_alias, object_permission } = keyWithValue.parse(answer);
  print(json ? jsonText(answer) : key);
  if (json) return;
  note(`${key_id} (${key_alias}), for ${object_permission.mcp_servers.join(', ') || 'no server yet'}.`);
  note('The value is shown only this once: only its hash is kept.');
}

const mint: CommandDefinition = {
  name: 'gateway keys mint',
  summary: 'Makes a virtual key; its value is shown this once, alone on standard output',
  example:
    'holdfast gateway keys mint --alias laptop --user ann --server memory --server repo_wiki --rpm-limit 60',
  flags: [
    ...termFlags,
    { flags: '--restricted', summary: 'to llm_api_routes: it may not read /key/info' },
    {
      flags: '--key-file <file>',
      summary: 'use this value, at least 20 characters (mode 0600, - for stdin)',
    },
  ],
  async run(_args, flags, context) {
    const body = {
      ...termsOfFlags(flags, 'gateway keys mint'),
      ...(flags.restricted === true && { allowed_routes: ['llm_api_routes'] }),
      ...(typeof flags.keyFile === 'string' && { key: await readKey(flags.keyFile, 'gateway keys mint') }),
    };
    showOnce(await askKeys('mint', body, context), context);
  },
};

const list: CommandDefinition = {
  name: 'gateway keys list',
  summary: 'Lists the virtual keys, oldest first, with what they spent',
  example: 'holdfast gateway keys list --user ann',
  flags: [
    { flags: '--user <id>', summary: 'only those of this owner' },
    { flags: '--alias <name>', summary: 'only those of this alias' },
    { flags: '--page <n>', summary: 'a hundred on a page', default: '1' },
  ],
  async run(_args, { user, alias, page }, context) {
    const query = {
      page,
      ...(user !== undefined && { user_id: user }),
      ...(alias !== undefined && { key_alias: alias }),
    };
    const answer = await askKeys('list', query, context);
    if (context.json) return context.print(jsonText(answer));
    const { keys, total_count, total_pages } = keyPage.parse(answer);
    if (keys.length === 0) return context.print('no keys');
    for (const line of listLines(keys, context.terminal)) context.print(line);
    if (total_pages > 1) context.note(`Page ${page} of ${total_pages}, ${total_count} keys in all.`);
  },
};

const info = commandOnKey('info', {
  summary: 'Shows one key, by its id or alias: scope, limits, spend, when it was last seen',
  example: 'holdfast gateway keys info laptop',
  lines: (answer) => infoLines(shownKey.parse(answer)),
});

const update = commandOnKey('update', {
  summary: 'Changes what a key may do, at once and in open sessions; what is not named stays',
  example: 'holdfast gateway keys update laptop --server memory --clear rpm-limit',
  flags: [...termFlags, clearFlag],
  lines(answer) {
    const { key_id, key_alias, revision } = shownKey.parse(answer);
    return [`${key_id} (${key_alias}) was changed, revision ${revision}`];
  },
});

const revoke = commandOnKey('revoke', {
  summary: 'Ends a key for ever, its open streams included',
  example: 'holdfast gateway keys revoke laptop',
  lines: ({ deleted_keys }) => [`revoked ${z.array(z.string()).parse(deleted_keys).join(', ')}`],
});

interface KeyCommand extends Pick<CommandDefinition, 'summary' | 'example'> {
  /** Terms of the key that the command sends with it. */
  readonly flags?: readonly CommandFlag[];
  /** Shows the answer of the running instance. */
  readonly lines: (answer: Readonly<Record<string, unknown>>) => readonly string[];
}

/** A command about one key, which is named by id or alias or by a file with its value. */
function commandOnKey(verb: string, { summary, example, flags = [], lines }: KeyCommand): CommandDefinition {
  const command = `gateway keys ${verb}`;
  return {
    name: `${command} [key]`,
    summary,
    example,
    flags: [...flags, keyFile],
    async run([name], given, context) {
      const key = await keyNamed(name, given.keyFile, command);
      const answer = await askKeys(verb, { ...key, ...termsOfFlags(given, command) }, context);
      if (context.json) return context.print(jsonText(answer));
      for (const line of lines(answer)) context.print(line);
    },
  };
}

const rotate: CommandDefinition = {
  name: 'gateway keys rotate [key]',
  summary: 'Gives a key another value, shown this once; the one before may stay good for a while',
  example: 'holdfast gateway keys rotate laptop --overlap 1h',
  flags: [
    { flags: '--overlap <time>', summary: 'how long the value before stays good, e.g. 1h', default: '0s' },
    { flags: '--new-key-file <file>', summary: 'use this value (mode 0600, - for stdin)' },
    keyFile,
  ],
  async run([name], { overlap, newKeyFile, keyFile: file }, context) {
    const key = await keyNamed(name, file, 'gateway keys rotate');
    const own =
      typeof newKeyFile === 'string' ? { new_key: await readKey(newKeyFile, 'gateway keys rotate') } : {};
    showOnce(await askKeys('rotate', { ...key, ...own, overlap }, context), context);
  },
};

/** The commands of virtual keys. */
export const keyCommands: readonly CommandDefinition[] = [mint, list, info, update, revoke, rotate];
