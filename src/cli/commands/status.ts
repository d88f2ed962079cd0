import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { FAILED, OK } from '../failure.ts';

/** `holdfast status`: what runs on a data folder, and how; else how the last run ended (R29, R40). */
export const status: CommandDefinition = {
  name: 'status',
  summary: 'tell what runs on the data folder and how it is; exit 0 when it runs and is healthy',
  example: 'holdfast status --json | jq .transaction',
  async run(_args, _flags, { dataDir, json, print, signal, terminal }) {
    const { instanceLines, lookAt } = await import('../instance/index.ts');
    const now = Date.now();
    const instance = await lookAt(dataDir, now, signal);
    if (json) print(JSON.stringify(instance, null, 2));
    else for (const line of instanceLines(instance, now, terminal)) print(line);
    return instance.state === 'ok' ? OK : FAILED;
  },
};
