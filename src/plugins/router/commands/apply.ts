import { existsSync } from 'node:fs';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { HostError } from '../../../core/host/errors/host-error.ts';
import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import { RouterError } from '../errors.ts';
import { changeFlags, EXIT_TEXT } from './change/confirmed-change.ts';
import { type CommandSettings, openTarget, targetFlags } from './target.ts';

type Flags = Readonly<Record<string, unknown>>;
const APPLY = 'router apply';
const RESTORE = 'router restore';

/** `holdfast router apply`: the safe change procedure as one command (R31). */
export function applyCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: `${APPLY} [file]`,
    summary: `Changes the config by the safe procedure: diff, append, checks, commit or revert (${EXIT_TEXT})`,
    example: `holdfast router apply --set interface.vlan.eth1.40.ipv4=10.77.41.1/24 --check 'ping -c1 10.77.41.1'`,
    flags: [
      {
        flags: '--set <path=value>',
        summary: 'change one field; may be given several times',
        repeatable: true,
      },
      { flags: '--unset <path>', summary: 'remove one field; may be given several times', repeatable: true },
      { flags: '--edit', summary: 'change the config in $VISUAL, $EDITOR or vi; secrets are placeholders' },
      { flags: '--identity-file <file>', summary: 'key of an age file (mode 0600)' },
      { flags: '--passphrase-file <file>', summary: 'passphrase of an age file (mode 0600)' },
      ...changeFlags,
      ...targetFlags,
    ],
    async run([file], flags, context) {
      const fields = flags.set !== undefined || flags.unset !== undefined;
      if ([file !== undefined, flags.edit === true, fields].filter(Boolean).length !== 1)
        usage('Give one of a file, --edit, or --set and --unset.');
      const target = openTarget(flags, context, settings);
      const client = target.api();
      const { carryOut, unlessInterrupted } = await import('./change/carry-out.ts');
      return unlessInterrupted(context, async () => {
        const before = await client.active(context.signal);
        const after = await wanted(before, file, flags, context);
        return carryOut({ target, before, after, command: APPLY }, flags, context);
      });
    },
  };
}

async function wanted(
  active: NetworkConfig,
  file: string | undefined,
  flags: Flags,
  context: CommandContext,
): Promise<NetworkConfig> {
  if (file !== undefined) {
    const { readConfigFile } = await import('./encryption.ts');
    return madeFrom(active, await readConfigFile(file, flags, active));
  }
  if (flags.edit === true) {
    const { editConfig } = await import('./change/editor.ts');
    return madeFrom(active, await editConfig(active, context));
  }
  const { setPath, unsetPath } = await import('./set-path.ts');
  let config = active;
  for (const assignment of listOf(flags.set)) config = setPath(config, assignment, APPLY);
  for (const path of listOf(flags.unset)) config = unsetPath(config, path, APPLY);
  return madeFrom(active, config);
}

/**
 * A config that is based on an older version would undo later changes. A config without an ncid is applied to the
 * active config: the printed difference shows the effect.
 *
 * @throws HF_ROUTER_NCID_MISMATCH
 */
function madeFrom(active: NetworkConfig, config: NetworkConfig): NetworkConfig {
  if (config.ncid !== undefined && config.ncid !== active.ncid)
    throw new RouterError('HF_ROUTER_NCID_MISMATCH');
  return { ...config, ncid: active.ncid };
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value : [];
}

function usage(reason: string): never {
  throw new HostError('HF_CLI_USAGE', { reason, command: APPLY });
}

/** `holdfast router restore`: makes an older config the active one, by the safe procedure (R31). */
export function restoreCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: `${RESTORE} <entry>`,
    summary: `Puts a config of the history, or of a file, in force again by the safe procedure (${EXIT_TEXT})`,
    example: `holdfast router restore 2 --check 'ping -c1 10.77.10.1'`,
    flags: [
      { flags: '--identity-file <file>', summary: 'key of an age file (mode 0600)' },
      { flags: '--passphrase-file <file>', summary: 'passphrase of an age file (mode 0600)' },
      ...changeFlags,
      ...targetFlags,
    ],
    async run([entry = ''], flags, context) {
      const isFile = /[/.]/.test(entry) && existsSync(entry);
      if (!isFile && flags.url !== undefined) {
        const reason = 'The history here is that of the router here: for the one of --url, give a file.';
        throw new HostError('HF_CLI_USAGE', { reason, command: RESTORE });
      }
      const target = openTarget(flags, context, settings);
      const client = target.api();
      const { carryOut, unlessInterrupted } = await import('./change/carry-out.ts');
      return unlessInterrupted(context, async () => {
        const before = await client.active(context.signal);
        const config = isFile
          ? await (await import('./encryption.ts')).readConfigFile(entry, flags, before)
          : (await (await import('./history.ts')).findEntry(target, entry)).config;
        const after = { ...config, ncid: before.ncid };
        return carryOut({ target, before, after, command: RESTORE }, flags, context);
      });
    },
  };
}
