import { maskText } from '../../../core/host/logging/mask-text.ts';
import { countSecrets } from '../../../core/host/logging/secret-fields.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { readActive } from './get.ts';
import { type CommandSettings, targetFlags } from './target.ts';

/** `holdfast router secrets`: how many secrets the active config holds, and where (R32). */
export function secretsCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router secrets',
    summary: 'Counts the secrets of the active config and names their paths, never their values',
    example: 'holdfast router secrets --json | jq .count',
    flags: targetFlags,
    async run(_args, flags, context) {
      const { config, from } = await readActive(flags, context, settings);
      const { count, paths } = countSecrets(config);
      const shown = paths.map((path) => maskText(path));
      if (context.json) return context.print(JSON.stringify({ count, paths: shown }));
      for (const path of shown) context.print(path);
      context.note(`${count} secrets; read from ${from}`);
    },
  };
}
