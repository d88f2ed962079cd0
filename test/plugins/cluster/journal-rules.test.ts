import test from 'ava';
import { journalViolations } from '../../support/hosts/journal-rules.ts';
import type { Stroke } from '../../support/hosts/pump-plugin.ts';

const LEASE_MS = 1_500;

/** @param what `<host> <token> <stroke> <begun or done> at <ms>`, and `as <id>` where the id is not that of the stroke */
function line(what: string): Stroke {
  const [host = '', token = '', stroke = '', phase, , ms, , id = `one:${stroke}.0`] = what.split(' ');
  const at = String(BigInt(ms ?? 0) * 1_000_000n);
  return {
    host,
    token: `i:${token}`,
    id,
    stroke: Number(stroke),
    phase: phase === 'begun' ? 'begun' : 'done',
    at,
  };
}

const found = (lines: readonly string[]) =>
  journalViolations(lines.map(line), LEASE_MS).map((text) => text.replace(/[:,(].*/, '').trim());

test('[C13] a journal that keeps the rules has no violation, also when an effect is tried again', (t) => {
  t.deepEqual(
    found([
      'one 1 1 begun at 0',
      'one 1 1 done at 20',
      'one 1 2 begun at 200',
      'two 2 2 begun at 2000',
      'two 2 2 done at 2020',
      // It stood still in the middle.
      'one 1 2 done at 3000',
      'two 2 3 begun at 3100',
    ]),
    [],
  );
});

test('[C13] each rule of the journal of effects has a journal that breaks it', (t) => {
  const start = ['one 1 1 begun at 0', 'one 1 1 done at 20'];
  t.deepEqual(found([...start, 'two 2 2 begun at 100', 'one 1 2 begun at 110']), ['an old token']);
  t.deepEqual(found([...start, 'one 1 2 begun at 90', 'two 2 2 begun at 100', 'one 1 2 done at 110']), [
    'two holders at once',
  ]);
  t.deepEqual(found([...start, 'one 1 2 begun at 100', 'two 2 1 begun at 200']), [
    'stroke 1 behind stroke 2',
  ]);
  t.deepEqual(found([...start, 'one 1 3 begun at 100']), ['no stroke between 1 and 3']);
  t.deepEqual(found([...start, 'one 1 2 done at 100']), ['it ended and never began']);
  t.deepEqual(found([...start, 'one 1 2 begun at 100', 'two 2 2 begun at 200 as two:9.0']), [
    'stroke 2 has two ids',
  ]);
  t.deepEqual(found([...start, 'one 1 2 begun at 100 as one:1.0']), ['2 strokes have 1 ids']);
  // The order of the lines is not that of the times.
  t.deepEqual(found(['two 2 2 begun at 200', ...start, 'two 2 2 done at 220']), []);
});
