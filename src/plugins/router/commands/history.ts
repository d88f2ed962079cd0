import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { plainText } from '../../../core/host/terminal.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { type CommandSettings, clientOf, targetFlags, withStore } from './target.ts';

interface Entry {
  readonly score: number;
  readonly ncid: string;
  readonly op: string;
  readonly who: string;
  readonly changed: readonly string[];
  /** Of a transaction that is neither committed nor reverted. */
  readonly pending?: true;
}

/** `holdfast router history`: the accepted config writes, newest first (R13). */
export function historyCommand(settings: CommandSettings): CommandDefinition {
  return {
    name: 'router history',
    summary: 'Lists the accepted config writes, newest first, and what was there before them',
    example: 'holdfast router history --limit 5',
    flags: [{ flags: '--limit <n>', summary: 'how many entries', default: '20' }, ...targetFlags],
    async run(_args, flags, context) {
      const { json, print, signal } = context;
      const limit = Number(flags.limit);
      if (!Number.isInteger(limit) || limit < 1) {
        throw new HoldfastError('HF_CLI_USAGE', {
          reason: '--limit takes a number from 1.',
          command: 'router history',
        });
      }
      const client = clientOf(flags, context, settings);
      const entries: readonly Entry[] = client
        ? ((await client.get(`/v1/config/history?limit=${limit}&first=true`, signal)) as { entries: Entry[] })
            .entries
        : await withStore(context, settings, (store) => store.history(limit));
      if (json) return print(JSON.stringify({ entries }));
      for (const [index, { score, ncid, op, who, changed, pending }] of entries.entries()) {
        const at = new Date(score * 1000).toISOString().slice(0, 19);
        const what = op === 'seed' ? 'what was there before' : changed.join(', ') || '(nothing changed)';
        print(
          `${String(index + 1).padStart(3)}  ${at}  ${ncid}  ${(pending ? 'pending' : op).padEnd(7)}  ${plainText(`${who}  ${what}`)}`,
        );
      }
      if (entries.length === 0) print('no writes yet');
    },
  };
}
