import { join } from 'node:path';
import { runSteps } from '../../core/host/history/pace.ts';
import { QUARANTINE } from '../../core/host/integrity/files.ts';
import { forgetStop } from '../../core/host/integrity/ledger.ts';
import type { CommandRun } from '../../core/host/plugin/command.ts';
import { progressOf } from '../../core/host/progress.ts';
import { jsonText } from '../../core/host/terminal.ts';
import { type Repaired, repairLog } from '../../core/kernel/log/repair.ts';

/**
 * `holdfast log repair`: saves every readable record of a damaged log into a new one in its place (C9). The original is
 * kept in the quarantine folder.
 */
export const repairDamagedLog: CommandRun = async (_args, _flags, context) => {
  const { dataDir, json, print, terminal } = context;
  const now = Date.now();
  const kept = join(dataDir, QUARANTINE, `log-${new Date(now).toISOString().replaceAll(':', '-')}`);
  const progress = progressOf('Reading', context);
  const steps = repairLog(dataDir, kept, now);
  let repaired: Repaired;
  try {
    repaired = await runSteps(steps, context.signal, progress);
  } finally {
    steps[Symbol.dispose](); // an interruption ends it between two steps: what it has begun is taken back
  }
  forgetStop(dataDir);
  if (json) return print(jsonText({ ok: true, ...repaired }, 2));
  const { records, first, last, missing, checkpoints, checkpointsFound, original } = repaired;
  print(
    `${records} records, ${first} to ${last - 1}, and ${checkpoints} of ${checkpointsFound} checkpoints of saved states were saved.`,
  );
  for (const { from, to, reason } of missing)
    print(terminal.paint('yellow', `Records ${from} to ${to} are missing: ${reason}.`));
  if (missing.length === 0) print('No record is missing.');
  print(`Record ${last} says so in the log itself. The damaged original is kept in ${original}`);
  print('Check it: holdfast log verify, holdfast replay verify.');
};
