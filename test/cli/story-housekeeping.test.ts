import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import { inBatches } from '../../src/core/host/history/select.ts';
import { Story } from '../../src/core/host/history/story.ts';
import type { Describe } from '../../src/core/host/history/words.ts';
import { HIDDEN } from '../../src/core/kernel/actors/definition.ts';
import { openReader } from '../../src/core/kernel/log/portable/open-reader.ts';
import type { LogRecord } from '../../src/core/kernel/log/record.ts';

const LOGS = join(import.meta.dirname, '../fixtures/logs/0.2.0');

/** @returns the records of a log, and those of them that no line stands for */
async function hiddenOf(
  file: string,
  describe: Describe,
): Promise<{ all: LogRecord[]; hidden: LogRecord[] }> {
  const reader = await openReader(file);
  try {
    const story = new Story({ all: false, describe });
    const all: LogRecord[] = [];
    const shown = new Set<number>();
    for await (const batch of inBatches(reader, {})) {
      all.push(...batch);
      for (const { records } of story.add(batch)) for (const { seq } of records) shown.add(seq);
    }
    return { all, hidden: all.filter(({ seq }) => !shown.has(seq)) };
  } finally {
    reader.close();
  }
}

const changed = ({ from, to }: LogRecord) =>
  !isDeepStrictEqual(from, to.value) || to.context !== undefined || to.done === true;

for (const name of readdirSync(LOGS)) {
  test(`[C7] every record of ${name} that a list hides changed no state and requested no effect`, async (t) => {
    const words: Describe[] = [() => undefined, () => HIDDEN, () => 'is described'];
    for (const describe of words) {
      const { all, hidden } = await hiddenOf(join(LOGS, name), describe);
      t.true(all.length > 10);
      const decisive = hidden.filter((record) => changed(record) || record.effects.length > 0);
      t.deepEqual(
        decisive.map(({ seq, actor, event }) => `${seq} ${actor} ${event.type}`),
        [],
      );
      t.true(hidden.length > 0, 'some are hidden, so the check has something to look at');
      const failures = hidden.filter(
        ({ event, failed }) => failed ?? /^effect\.(failed|lost)$/.test(event.type),
      );
      t.deepEqual(failures, []);
    }
  });
}
