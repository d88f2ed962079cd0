import test from 'ava';
import { PendingReplies } from '../../../../src/core/host/http/pending-replies.ts';
import { KernelError } from '../../../../src/core/kernel/errors/kernel-error.ts';

test('a request gets the reply of its own story, once', async (t) => {
  const pendingReplies = new PendingReplies();
  const [one, two] = [pendingReplies.open('a', 1_000), pendingReplies.open('b', 1_000)];
  t.is(pendingReplies.size, 2);
  t.true(pendingReplies.settle('b', { status: 202 }));
  t.deepEqual(await two, { status: 202 });
  t.true(pendingReplies.has('a'));
  t.true(pendingReplies.settle('a', { status: 200, body: { done: true } }));
  t.deepEqual(await one, { status: 200, body: { done: true } });
  t.is(pendingReplies.size, 0);
});

test('a reply that nobody waits for is gone, as after a restart', (t) => {
  const pendingReplies = new PendingReplies();
  t.false(pendingReplies.settle('a', { status: 200 }));
  t.notThrows(() => pendingReplies.fail('a', new Error('no')));
});

test('a decision that will not be made ends the wait with its error', async (t) => {
  const pendingReplies = new PendingReplies();
  const waiting = pendingReplies.open('a', 1_000);
  pendingReplies.fail('a', new KernelError('HF_LOG_CLOSED'));
  await t.throwsAsync(waiting, { code: 'HF_LOG_CLOSED' });
  t.false(pendingReplies.has('a'));
});

test('without a decision in time the result is unknown, and a late reply is gone', async (t) => {
  const pendingReplies = new PendingReplies();
  await t.throwsAsync(pendingReplies.open('a', 20), { code: 'HF_HTTP_TIMEOUT' });
  t.false(pendingReplies.settle('a', { status: 200 }));
});
