import test from 'ava';
import { validate, version } from 'uuid';
import { newCorrelation } from '../../../src/core/kernel/clock.ts';

test('correlation ids are unique, and each sorts after the one before', (t) => {
  const ids = Array.from({ length: 20_000 }, newCorrelation);
  t.is(new Set(ids).size, ids.length);
  t.deepEqual(ids.toSorted(), ids);
  t.true(ids.every((id) => validate(id) && version(id) === 7));
});

test('a correlation id says when its story began', (t) => {
  const before = Date.now();
  const at = Number.parseInt(newCorrelation().replace('-', '').slice(0, 12), 16);
  t.true(at >= before && at <= Date.now());
});
