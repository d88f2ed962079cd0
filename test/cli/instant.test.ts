import test from 'ava';
import fc from 'fast-check';
import { parsePlace } from '../../src/cli/log/place.ts';
import { firstSeqAt } from '../../src/core/host/history/place.ts';
import { isCoded } from '../../src/core/kernel/errors/holdfast-error.ts';
import type { LogReader, ReadRange } from '../../src/core/kernel/log/event-log.ts';
import type { LogRecord } from '../../src/core/kernel/log/record.ts';

const NOW = Date.parse('2026-01-31T12:00:00Z');
const parse = (text: string) => parsePlace(text, '--from', NOW);

const places: readonly [string, object][] = [
  ['120', { seq: 120 }],
  ['2026-01-31T03:05', { at: Date.parse('2026-01-31T03:05:00Z') }],
  ['2026-01-31 03:05:07.250', { at: Date.parse('2026-01-31T03:05:07.250Z') }],
  ['2026-01-31T03:05:00+02:00', { at: Date.parse('2026-01-31T01:05:00Z') }],
  ['2026-01-31', { at: Date.parse('2026-01-31T00:00:00Z') }],
  ['03:05', { at: Date.parse('2026-01-31T03:05:00Z') }],
  ['23:05', { at: Date.parse('2026-01-30T23:05:00Z') }],
  ['15m', { at: NOW - 900_000 }],
  ['2d', { at: NOW - 172_800_000 }],
];

for (const [text, place] of places) {
  test(`${text} is a place in the log`, (t) => {
    t.deepEqual(parse(text) as object, place);
  });
}

test('what is no place is refused by the name of its flag', (t) => {
  for (const text of [
    '',
    'now',
    '-1',
    '1.5',
    '25:00',
    '2026-13-01',
    '2026-01-31T25:00',
    '15w',
    '9'.repeat(20),
  ]) {
    const error = t.throws(() => parse(text), undefined, text);
    t.true(isCoded(error, 'HF_CLI_USAGE') && error.what.includes(`--from ${text}`), text);
  }
});

test('a time is found among any records whose times never go back', async (t) => {
  const steps = fc.array(fc.nat(3), { maxLength: 40 });
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 500 }), fc.nat(130), async (waits, first, wanted) => {
      let at = 0;
      const records = waits.map((wait, index) => {
        at += wait;
        return { seq: first + index, at } as LogRecord;
      });
      const found = await firstSeqAt(readerOf(records), wanted);
      const expected = records.find((record) => record.at >= wanted)?.seq ?? (records.at(-1)?.seq ?? 0) + 1;
      t.is(found, expected);
    }),
    { numRuns: 300 },
  );
});

function readerOf(records: readonly LogRecord[]): LogReader {
  return {
    async *read({ from = 1, limit = Number.POSITIVE_INFINITY }: ReadRange = {}) {
      yield* records.filter(({ seq }) => seq >= from).slice(0, limit);
    },
    lastSeq: () => records.at(-1)?.seq ?? 0,
    close: () => {},
  };
}
