import { resolve } from 'node:path';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { maskText } from '../../../core/host/logging/mask-text.ts';
import { PAGE, redact } from '../../../core/host/logging/redact.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { countSecrets } from '../config/secrets.ts';
import { NETWORK_CONFIG } from '../secret-fields.ts';
import { type CommandSettings, openTarget, targetFlags } from './target.ts';

type Flags = Readonly<Record<string, unknown>>;

/** `holdfast router get`: the active config redacted, or a copy of it for an editor or for keeping (R32, R35). */
export function getCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router get',
    summary: 'Shows the active network config, secrets redacted; or writes a copy to edit or keep',
    example: 'holdfast router get --json | jq .interface.vlan',
    flags: [
      { flags: '--out <file>', summary: 'write a copy for `router apply`, with placeholders for secrets' },
      { flags: '--with-secrets', summary: 'with --out: the secrets themselves, encrypted for age' },
      { flags: '--recipient-file <file>', summary: 'with --with-secrets: encrypt for these (age1…)' },
      {
        flags: '--passphrase-file <file>',
        summary: 'with --with-secrets: encrypt with this one (mode 0600)',
      },
      { flags: '--plaintext', summary: 'with --with-secrets: do not encrypt' },
      ...targetFlags,
    ],
    async run(_args, flags, context) {
      const { json, print, note } = context;
      if (flags.out === undefined) {
        for (const only of ['withSecrets', 'plaintext', 'recipientFile', 'passphraseFile'])
          if (flags[only] !== undefined) usage('Secrets are written to a file alone: give --out FILE.');
      } else if (flags.plaintext === true && flags.withSecrets !== true) {
        usage('--plaintext is about the secrets: it needs --with-secrets.');
      }
      const target = openTarget(flags, context, settings);
      const config = await target.active(context.signal);
      if (typeof flags.out === 'string') {
        const { kind, count } = await write(config, resolve(flags.out), flags);
        if (json) print(JSON.stringify({ file: resolve(flags.out), secrets: count, kind }));
        else
          note(
            `${resolve(flags.out)} written, mode 0600; its ${count} secrets are ${kind}; read from ${target.from}`,
          );
        return;
      }
      const shown = redact(config, PAGE, NETWORK_CONFIG);
      print(json ? JSON.stringify(shown) : JSON.stringify(shown, null, 2));
      if (!json) note(`${countSecrets(config).count} secrets redacted; read from ${target.from}`);
    },
  };
}

interface Written {
  /** What stands in the file for the secrets. */
  readonly kind: 'placeholders' | 'plaintext' | 'encrypted';
  readonly count: number;
}

async function write(config: NetworkConfig, file: string, flags: Flags): Promise<Written> {
  const { writeCopy } = await import('./config-file.ts');
  const text = (value: NetworkConfig) => `${JSON.stringify(value, null, 2)}\n`;
  if (flags.withSecrets !== true) {
    const { countPlaceholders, hideSecrets } = await import('./leaves.ts');
    const copy = hideSecrets(config);
    writeCopy(file, Buffer.from(text(copy)));
    // More than the secrets: of a part such as `wpaSupplicant` every value is held back.
    return { kind: 'placeholders', count: countPlaceholders(copy) };
  }
  const { count } = countSecrets(config);
  if (flags.plaintext === true) {
    writeCopy(file, Buffer.from(text(config)));
    return { kind: 'plaintext', count };
  }
  const { encrypt } = await import('./encryption.ts');
  writeCopy(file, await encrypt(text(config), flags));
  return { kind: 'encrypted', count };
}

function usage(reason: string): never {
  throw new HostError('HF_CLI_USAGE', { reason, command: 'router get' });
}

/** `holdfast router secrets`: how many secrets the active config holds, and where (R32). */
export function secretsCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router secrets',
    summary: 'Counts the secrets of the active config and names their paths, never their values',
    example: 'holdfast router secrets --json | jq .count',
    flags: targetFlags,
    async run(_args, flags, context) {
      const target = openTarget(flags, context, settings);
      const config = await target.active(context.signal);
      const { count, paths } = countSecrets(config);
      const shown = paths.map((path) => maskText(path));
      if (context.json) return context.print(JSON.stringify({ count, paths: shown }));
      for (const path of shown) context.print(path);
      context.note(`${count} secrets; read from ${target.from}`);
    },
  };
}
