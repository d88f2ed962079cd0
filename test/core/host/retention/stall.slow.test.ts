import { join } from 'node:path';
import test from 'ava';
import { reconcilerRecord } from '../../../../bench/records.ts';
import { pruneRunning } from '../../../../src/core/host/retention/prune-running.ts';
import { SqliteLog } from '../../../../src/core/kernel/log/sqlite-log.ts';
import { tempDir } from '../../../support/temp.ts';

/** The longest that the event loop may be held up, milliseconds of this thread's processor time. */
const MOST_MS = 20;

// Alone in its file: another test in this thread would be counted, too.
test('[C10] while a log is archived and pruned the main thread is never held up for 20 ms, and records are appended', async (t) => {
  t.timeout(240_000, 'twenty thousand records are written and archived');
  const dir = tempDir(t);
  const log = new SqliteLog({ dataDir: dir, patienceMs: 60_000 });
  t.teardown(() => log.close());
  const append = () => log.append(reconcilerRecord(log.lastSeq() + 1), { durability: 'sync' });
  for (let batch = 0; batch < 40; batch += 1) {
    for (let n = 0; n < 500; n += 1) append();
    await log.whenDurable(log.lastSeq());
  }
  const written = log.lastSeq();
  const used = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1_000;
  };
  let longest = 0;
  let before = used();
  const watch = setInterval(() => {
    const now = used();
    longest = Math.max(longest, now - before);
    before = now;
    append();
  }, 2);
  const { plan } = await pruneRunning(log, {
    dataDir: dir,
    request: { keepBytes: 1_000_000 },
    folder: join(dir, 'archive'),
    now: Date.now(),
  });
  clearInterval(watch);
  t.log(`${longest.toFixed(1)} ms; ${log.lastSeq() - written} records meanwhile`);
  t.true(plan.to > written / 2);
  t.true(log.lastSeq() > written + 20);
  t.true(longest < MOST_MS, `${longest} ms`);
  await log.whenDurable(log.lastSeq());
});
