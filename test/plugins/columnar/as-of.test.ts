import test from 'ava';
import fc from 'fast-check';
import { asOf } from '../../../src/plugins/columnar/reading/as-of.ts';
import { runs } from '../../support/runs.ts';

test('[C15] texts and names in a statement stay as they are when a moment becomes its now', (t) => {
  const at = Date.UTC(2026, 8, 1, 12, 0, 1, 500);
  const seconds = Math.floor(at / 1_000);
  t.is(asOf('SELECT now()', at), `SELECT toDateTime(${seconds})`);
  t.is(
    asOf('SELECT NOW ( ), now64(9)', at),
    `SELECT toDateTime(${seconds}), fromUnixTimestamp64Milli(toInt64(${at}))`,
  );
  for (const sql of [
    "SELECT 'now()'",
    'SELECT `now()`',
    'SELECT "today()"',
    'SELECT 1 -- now()',
    'SELECT /* now() */ 1',
    'SELECT known(), x.now(), now',
  ])
    t.is(asOf(sql, at), sql);
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom("'", '\\', '"', '`', 'now()', ' ', '-', '\n', '/', '*', 'x') }),
      (text) => {
        t.true(typeof asOf(text, at) === 'string');
      },
    ),
    { numRuns: runs(200) },
  );
});
