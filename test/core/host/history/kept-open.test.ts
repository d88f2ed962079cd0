import test, { type ExecutionContext } from 'ava';
import { keptOpen } from '../../../../src/core/host/history/kept-open.ts';
import { type LogSource, openFolder } from '../../../../src/core/host/history/log-source.ts';
import { writeLargeLog } from '../../../support/large-log.ts';
import { tempDir } from '../../../support/temp.ts';

/** A folder with a log, which counts how often it is opened and closed. */
function counted(t: ExecutionContext) {
  const dir = tempDir(t);
  const counts = { opened: 0, closed: 0 };
  const source: LogSource = {
    ...{ mode: 'folder', place: dir },
    async open() {
      const { log, close } = await openFolder(dir);
      counts.opened += 1;
      return {
        log,
        close() {
          counts.closed += 1;
          close();
        },
      };
    },
    wordsOf: async () => ({}),
    actors: async () => [],
    stoppedReports: async () => ({}),
    declared: async () => ({ plugins: [], contributions: [], health: [] }),
  };
  const ends = new AbortController();
  t.teardown(() => ends.abort());
  return { dir, counts, ends, kept: keptOpen(source, ends.signal) };
}

test('[C15] questions share one open log, which is closed with the last of them at the end', async (t) => {
  const { dir, counts, ends, kept } = counted(t);
  writeLargeLog(dir, { records: 100, doors: 5, end: 1e12, failEvery: 10 });
  const [first, second] = await Promise.all([kept.open(), kept.open()]);
  first.close();
  const third = await kept.open();
  t.is(third.log.lastSeq(), 100);
  third.close();
  t.deepEqual(counts, { opened: 1, closed: 0 });
  ends.abort();
  await new Promise((resolve) => setImmediate(resolve));
  t.is(counts.closed, 0, 'one is still asked');
  t.is(second.log.firstSeq(), 1);
  second.close();
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(counts, { opened: 1, closed: 1 });
  const late = await kept.open();
  late.close();
  t.deepEqual(counts, { opened: 2, closed: 2 }, 'none is kept any more');
});

test('[C15] a log that could not be opened is tried again with the next question', async (t) => {
  const { dir, kept } = counted(t);
  await t.throwsAsync(kept.open(), { code: 'HF_LOG_MISSING' });
  writeLargeLog(dir, { records: 100, doors: 5, end: 1e12, failEvery: 10 });
  const { log, close } = await kept.open();
  t.is(log.lastSeq(), 100);
  close();
});
