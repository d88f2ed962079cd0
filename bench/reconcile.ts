import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { reconciler } from '../src/plugins/reconciler/index.ts';
import { type Benchmark, withFolder, withScope } from './measure.ts';
import { heal, type Latency, latency, SETTLE_MS } from './router/heal.ts';
import { startRig } from './router/rig.ts';

const SAVES = 500;
/** Commits that follow one another between event and save: heard, settled, read, asked, stored. */
const COMMITS = 5;

/** What the disk and the settle time alone take. */
async function floor(dir: string): Promise<Latency> {
  const db = new DatabaseSync(`${dir}/floor.db`);
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (body TEXT)');
  const insert = db.prepare('INSERT INTO t VALUES (?)');
  const took: number[] = [];
  for (let round = 0; round < 100; round += 1) {
    const started = performance.now();
    await sleep(SETTLE_MS);
    for (let commit = 0; commit < COMMITS; commit += 1) insert.run('x'.repeat(500));
    took.push(performance.now() - started);
  }
  db.close();
  return latency(took);
}

export const reconcileBenchmark: Benchmark = {
  name: 'reconcile',
  summary: `an app save drops an address: from the event to the save that holds it again`,
  async run() {
    const before = await withFolder(floor);
    const ours = await withScope(async (scope) => heal(await startRig(scope, {}, [reconciler()]), SAVES));
    const line = (at: 'p50' | 'p99') => ({
      what: `healed, ${ours.count} saves, ${at}`,
      ours: `${ours[at].toFixed(1)} ms`,
      baseline: `${before[at].toFixed(1)} ms settle and ${COMMITS} bare commits`,
      ratio: ours[at] / before[at],
    });
    return [line('p50'), { ...line('p99'), target: '< 100 ms', met: ours.p99 < 100 }];
  },
};
