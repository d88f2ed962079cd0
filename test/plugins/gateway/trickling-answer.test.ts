import test from 'ava';
import { AnswerBody, Stalled } from '../../../src/plugins/gateway/fast-path/upstream-request.ts';

test('[G23] an answer whose parts each come in time, and never end, is given up after five times that', async (t) => {
  const idleMs = 300;
  const flow = { pause: () => undefined, resume: () => undefined, abort: () => undefined };
  const body = new AnswerBody(flow);
  const timer = setInterval(() => body.push(Buffer.from(' ')), 10);
  t.teardown(() => clearInterval(timer));
  // Without the bound it would be whole here.
  const whole = setTimeout(() => body.end(), 10 * idleMs);
  t.teardown(() => clearTimeout(whole));
  const began = performance.now();
  await t.throwsAsync(
    body.each(() => undefined, idleMs),
    { instanceOf: Stalled },
  );
  t.true(performance.now() - began >= 4 * idleMs, 'not for a part that came late');
});
