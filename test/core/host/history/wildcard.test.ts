import test from 'ava';
import { actorMatcher, wildcardMatcher } from '../../../../src/core/host/history/select.ts';
import { watchWork } from '../../../support/turns.ts';

const KEY = 'gateway.key/k_5172d45618f0beb5383e35aa1caf04dd';

test('[C7] a name of many asterisks is compared at once, not in years', (t) => {
  const work = watchWork();
  const found = [`${'*'.repeat(500)}!`, `${'*4'.repeat(250)}!`].map((wanted) => actorMatcher(wanted)(KEY));
  t.deepEqual(found, [false, false]);
  const ms = work.ms();
  t.log(`${ms} ms`);
  t.true(ms < 5_000);
});

for (const [wanted, text, is] of [
  ['*', '', true],
  ['SET', 'SET', true],
  ['SET', 'SETS', false],
  ['S*T', 'ST', true],
  ['S*T', 'S', false],
  ['aa*a', 'aa', false],
  ['a*b*c', 'a-b-b-c', true],
  ['a*b*c', 'a-c-b', false],
  ['*b*', 'abc', true],
  ['*.key/*', KEY, true],
  ['**dd', KEY, true],
  ['a*bc*c', 'abc', false],
  ['a.c', 'abc', false],
] as const)
  test(`[C7] ${wanted} ${is ? 'stands' : 'does not stand'} for "${text}"`, (t) => {
    t.is(wildcardMatcher(wanted)(text), is);
  });
