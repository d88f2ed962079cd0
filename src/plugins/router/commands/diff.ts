import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { type CommandSettings, fingerprintOf } from './target.ts';

/** `holdfast router diff`: what differs between two configs of the history, or one and the active (R31). */
export function diffCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router diff <entry> [other]',
    summary: 'Shows what changed from one config of the history to another; secrets as fingerprints',
    example: 'holdfast router diff 2 active',
    async run([entry = '', other = 'active'], _flags, context) {
      const { dataDir, json, print, note, terminal } = context;
      const [{ findEntry }, { differenceOf }, { showChanges }] = await Promise.all([
        import('./entries.ts'),
        import('./config/difference.ts'),
        import('./change/carry-out.ts'),
      ]);
      const find = (wanted: string) => findEntry(context, settings, wanted);
      const [before, after] = [await find(entry), await find(other)];
      const changes = differenceOf(before.config, after.config, fingerprintOf(dataDir));
      if (json) return print(JSON.stringify({ before: before.label, after: after.label, changes }));
      note(`from ${before.label} to ${after.label}`);
      showChanges(changes, print, terminal.paint);
      if (changes.length === 0) print('No difference.');
    },
  };
}
