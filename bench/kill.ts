import { startInstance, writeConfig } from '../test/support/instance.ts';
import { killRounds, replayed, stuckTimers } from '../test/support/kill-rounds.ts';
import { tempDir } from '../test/support/temp.ts';
import { type Benchmark, withScope } from './measure.ts';

/** As many as the promise names; `KILLS` for a quick look. */
const KILLS = Number(process.env.KILLS ?? 1_000);

/** Kills an instance under load again and again, and holds what it acknowledged against its log (C5). */
export const killBenchmark: Benchmark = {
  name: 'kill',
  summary: `an instance killed with signal 9 at ${KILLS.toLocaleString('en')} random instants under load`,
  /** Takes most of an hour: only when it is named. */
  onRequest: true,
  run: () =>
    withScope(async (scope) => {
      const dir = tempDir(scope);
      const config = writeConfig(dir, { windowMs: 400 });
      const report = await killRounds(scope, dir, config, KILLS);
      const { child } = await startInstance(scope, dir, config);
      await child.kill('SIGTERM');
      const { divergence } = await replayed(dir, config);
      const line = (what: string, count: number) => ({
        what,
        ours: String(count),
        baseline: `${report.acknowledged} acknowledged writes`,
        ratio: count / Math.max(1, report.acknowledged),
        target: '0',
        met: count === 0 && report.acknowledged > 0,
      });
      return [
        line('acknowledged writes lost', report.lost.length),
        line('divergences on replay', divergence ? 1 : 0),
        line('timers that never fired', stuckTimers(dir, 60_000).length),
      ];
    }),
};
