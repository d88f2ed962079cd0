import { resolve } from 'node:path';
import { HostError } from '../../../core/host/errors/host-error.ts';
import type { CommandFlag } from '../../../core/host/plugin/command.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';

type Flags = Readonly<Record<string, unknown>>;

/** The terms of a key as flags. */
export const termFlags: readonly CommandFlag[] = [
  { flags: '--alias <name>', summary: 'a label for reports and logs' },
  { flags: '--user <id>', summary: 'its owner, to whom spend is attributed' },
  {
    flags: '--server <name>',
    summary: 'a server it may reach; may be given several times',
    repeatable: true,
  },
  {
    flags: '--tool <name>',
    summary:
      'a tool it may see and call, as <server>-<tool>; all of its servers unless given; may be given several times',
    repeatable: true,
  },
  { flags: '--rpm-limit <n>', summary: 'calls of tools a minute' },
  { flags: '--max-budget <amount>', summary: 'what its calls may cost in all' },
  { flags: '--max-parallel <n>', summary: 'requests that may be open at once' },
  { flags: '--max-streams <n>', summary: 'event streams that may be open at once' },
  { flags: '--expires <when>', summary: 'a time from now (30d, 12h) or a moment (2027-01-31T00:00:00Z)' },
];

/** The fields that `--clear` removes, by its argument. */
const CLEARED: Readonly<Record<string, object>> = {
  user: { user_id: null },
  server: { object_permission: null },
  tool: { object_permission: { mcp_tools: null } },
  'rpm-limit': { rpm_limit: null },
  'max-budget': { max_budget: null },
  'max-parallel': { max_parallel_requests: null },
  'max-streams': { max_streams: null },
  expires: { expires: null },
};

export const clearFlag: CommandFlag = {
  flags: '--clear <term>',
  summary: `remove a term: ${Object.keys(CLEARED).join(', ')}; may be given several times`,
  repeatable: true,
};

/** The option that sets a field of a request. */
const OPTIONS: readonly (readonly [field: RegExp, option: string])[] = [
  [/^object_permission\.mcp_servers\b/, '--server'],
  [/^object_permission\.mcp_tools\b/, '--tool'],
  [/^key_alias$/, '--alias'],
  [/^user_id$/, '--user'],
  [/^rpm_limit$/, '--rpm-limit'],
  [/^max_budget$/, '--max-budget'],
  [/^max_parallel_requests$/, '--max-parallel'],
  [/^max_streams$/, '--max-streams'],
  [/^(?:duration|expires)$/, '--expires'],
  [/^key$/, '--key-file'],
  [/^new_key$/, '--new-key-file'],
  [/^overlap$/, '--overlap'],
  [/^page$/, '--page'],
];

/** @returns HF_CLI_USAGE that names the option, for an error about the field that the option sets; any other as it is */
export function aboutOption(error: unknown, command: string): unknown {
  if (!isCoded(error, 'HF_GATEWAY_KEY_REQUEST')) return error;
  const { field, reason } = error.details;
  const option = OPTIONS.find(([name]) => name.test(String(field)))?.[1];
  return option === undefined ? error : usage(`${option}: ${reason}.`, command);
}

/** Converts flags to fields of a request. @throws HF_CLI_USAGE */
export function termsOfFlags(flags: Flags, command: string): Record<string, unknown> {
  const { alias, user, server, tool, rpmLimit, maxBudget, maxParallel, maxStreams, expires } = flags;
  const joined = ((server ?? []) as string[]).find((name) => name.includes(','));
  if (joined !== undefined) {
    const several = joined.split(',').map((name) => `--server ${name.trim()}`);
    throw usage(`--server takes one name; give it several times: ${several.join(' ')}.`, command);
  }
  const cleared = ((flags.clear ?? []) as string[]).map((term) => {
    const fields = CLEARED[term];
    if (!fields) throw usage(`--clear takes one of ${Object.keys(CLEARED).join(', ')}.`, command);
    return fields;
  });
  const scope = {
    ...(server !== undefined && { mcp_servers: server }),
    ...(tool !== undefined && { mcp_tools: tool }),
  };
  return {
    ...Object.assign({}, ...cleared),
    ...(alias !== undefined && { key_alias: alias }),
    ...(user !== undefined && { user_id: user }),
    ...(Object.keys(scope).length > 0 && { object_permission: scope }),
    ...(rpmLimit !== undefined && { rpm_limit: numberOf(rpmLimit, '--rpm-limit', command) }),
    ...(maxBudget !== undefined && { max_budget: numberOf(maxBudget, '--max-budget', command) }),
    ...(maxParallel !== undefined && {
      max_parallel_requests: numberOf(maxParallel, '--max-parallel', command),
    }),
    ...(maxStreams !== undefined && { max_streams: numberOf(maxStreams, '--max-streams', command) }),
    ...(typeof expires === 'string' && (/^\d+[a-z]$/i.test(expires) ? { duration: expires } : { expires })),
  };
}

function numberOf(text: unknown, flag: string, command: string): number {
  const number = typeof text === 'string' && /^\d+(?:\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(number)) throw usage(`${flag} takes a number.`, command);
  return number;
}

const LARGEST_BYTES = 4_096;

/**
 * Reads the value of a key from a file or a pipe, because every user of the machine can see arguments.
 *
 * @param file path (mode 0600), or `-` for standard input
 * @throws HF_CONFIG_SECRET_MISSING, HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID, HF_CLI_USAGE
 */
export async function readKey(file: string, command: string): Promise<string> {
  if (file !== '-') return readTokenFile(resolve(file));
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of process.stdin) {
    size += (chunk as Buffer).length;
    if (size > LARGEST_BYTES) throw usage('Standard input is too long for a key.', command);
    chunks.push(chunk as Buffer);
  }
  const value = Buffer.concat(chunks).toString('utf8').trim();
  if (value === '') throw usage('Standard input is empty.', command);
  return value;
}

/** Reads which key a command is about: its id or alias, or a file with its value. */
export async function keyNamed(
  name: string | undefined,
  file: unknown,
  command: string,
): Promise<{ name: string } | { key: string }> {
  if (name !== undefined && /^(?:bearer\s+)?sk-/i.test(name)) {
    const reason =
      "A key's value does not belong in an argument, where others see it: use --key-file, and rotate that key.";
    throw usage(reason, command);
  }
  if ((name === undefined) === (typeof file !== 'string')) {
    throw usage('Name one key: by its id or alias, or with --key-file.', command);
  }
  return typeof file === 'string' ? { key: await readKey(file, command) } : { name: name ?? '' };
}

export const usage = (reason: string, command: string): HoldfastError =>
  new HostError('HF_CLI_USAGE', { reason, command });
