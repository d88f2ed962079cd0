import test from 'ava';
import {
  judgeTransaction,
  type TransactionFacts,
} from '../../../../src/plugins/router/remote/transaction-check.ts';

const NOW = 1_800_000_000_000;
const madeAgo = (ms: number) => `${'a'.repeat(19)}${NOW - ms}`;
const persisted = { ncid: madeAgo(900_000), name: 'before' };
const appended = (ageMs: number) => ({ ncid: madeAgo(ageMs), name: 'after' });
const judged = (facts: Partial<TransactionFacts>) =>
  judgeTransaction({ persisted, pending: null, served: persisted, ...facts }, NOW);

test('[R40] a transaction is pending while the API serves its config and another is persisted', (t) => {
  const config = appended(30_000);
  const verdict = judged({ pending: JSON.stringify(config), served: { ...config, reqId: 'r' } });
  t.is(verdict.state, 'warn');
  t.regex(verdict.found, /pending since 30 s ago, 90 s left/);
});

test('[R40] one that is still served after its window has failed to revert', (t) => {
  const config = appended(121_000);
  const verdict = judged({ pending: JSON.stringify(config), served: config });
  t.is(verdict.state, 'fail');
  t.regex(verdict.found, /121 s ago/);
  t.is(judged({ pending: JSON.stringify(appended(119_999)), served: appended(119_999) }).state, 'warn');
  t.is(judged({ pending: JSON.stringify({ name: 'x' }), served: { name: 'x' } }).state, 'fail', 'no ncid');
  t.is(judged({ pending: JSON.stringify(appended(-5_000)), served: appended(-5_000) }).state, 'warn');
});

test('[R40] what was committed, reverted or replaced is not pending, however young', (t) => {
  const config = appended(1_000);
  const pending = JSON.stringify(config);
  t.is(judged({ pending, persisted: config, served: config }).state, 'ok');
  t.is(judged({ pending, persisted: config, served: { fault: 'down' } }).state, 'ok');
  t.is(judged({ pending }).state, 'ok');
  t.is(judged({}).state, 'ok');
});

test('[R40] an API that cannot be asked leaves the age to judge by, and never an ok', (t) => {
  const served = { fault: 'no answer' };
  const young = judged({ pending: JSON.stringify(appended(10_000)), served });
  t.is(young.state, 'warn');
  t.regex(young.found, /may be pending for 110 s: the API cannot be asked \(no answer\)/);
  t.is(judged({ pending: JSON.stringify(appended(500_000)), served }).state, 'unknown');
  t.is(judged({ pending: 'no JSON', served }).state, 'unknown');
});

test('[R40] what fits nothing is unknown', (t) => {
  const pending = JSON.stringify(appended(10_000));
  t.is(judged({ pending, served: { ncid: madeAgo(1), name: 'third' } }).state, 'unknown');
  t.is(judged({ pending, persisted: undefined }).state, 'unknown');
});
