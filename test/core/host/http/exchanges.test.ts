import test from 'ava';
import { Exchanges } from '../../../../src/core/host/http/exchanges.ts';
import { CoreError } from '../../../../src/core/kernel/errors/core-error.ts';

test('[C14] a request gets the reply of its own story, once', async (t) => {
  const exchanges = new Exchanges();
  const [one, two] = [exchanges.open('a', 1_000), exchanges.open('b', 1_000)];
  t.is(exchanges.size, 2);
  t.true(exchanges.settle('b', { status: 202 }));
  t.deepEqual(await two, { status: 202 });
  t.true(exchanges.has('a'));
  t.true(exchanges.settle('a', { status: 200, body: { done: true } }));
  t.deepEqual(await one, { status: 200, body: { done: true } });
  t.is(exchanges.size, 0);
});

test('[C14] a reply that nobody waits for is gone, as after a restart', (t) => {
  const exchanges = new Exchanges();
  t.false(exchanges.settle('a', { status: 200 }));
  t.notThrows(() => exchanges.fail('a', new Error('no')));
});

test('[C14] a decision that will not be made ends the wait with its error', async (t) => {
  const exchanges = new Exchanges();
  const waiting = exchanges.open('a', 1_000);
  exchanges.fail('a', new CoreError('HF_LOG_CLOSED'));
  await t.throwsAsync(waiting, { code: 'HF_LOG_CLOSED' });
  t.false(exchanges.has('a'));
});

test('[C14] without a decision in time the result is unknown, and a late reply is gone', async (t) => {
  const exchanges = new Exchanges();
  await t.throwsAsync(exchanges.open('a', 20), { code: 'HF_HTTP_TIMEOUT' });
  t.false(exchanges.settle('a', { status: 200 }));
});
