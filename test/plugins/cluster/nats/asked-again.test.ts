import test from 'ava';
import { askedAgain } from '../../../../src/plugins/cluster/nats/asked-again.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

/** Questions in the order in which they were asked, and how to answer each. */
function questions() {
  const asked: PromiseWithResolvers<string>[] = [];
  const ask = () => {
    const question = Promise.withResolvers<string>();
    asked.push(question);
    return question.promise;
  };
  return { asked, ask };
}

test('[C13] a question that was lost while a stream had no leader is answered by the one that is elected, within a second', async (t) => {
  const clock = new VirtualClock();
  const { asked, ask } = questions();
  const answer = askedAgain(ask, clock);
  await clock.advance(999);
  t.is(asked.length, 1);
  await clock.advance(1);
  t.is(asked.length, 2);
  asked[1]?.resolve('by the new leader');
  t.is(await answer, 'by the new leader');
  asked[0]?.reject(new Error('no answer in time'));
  await clock.advance(5_000);
  t.is(asked.length, 2);
  t.is(clock.armed, 0);
});

test('[C13] what nobody answers fails when the first question has waited long enough, and a refusal at once', async (t) => {
  const clock = new VirtualClock();
  const { asked, ask } = questions();
  const lost = askedAgain(ask, clock);
  await clock.advance(4_000);
  t.is(asked.length, 5);
  asked[0]?.reject(new Error('no answer in time'));
  await t.throwsAsync(lost, { message: 'no answer in time' });
  await t.throwsAsync(
    askedAgain(() => Promise.reject(new Error('not permitted')), clock),
    { message: 'not permitted' },
  );
  await clock.advance(0);
  t.is(clock.armed, 0);
});

test('[C13] a question whose answer is behind large messages is not asked again until they are there', async (t) => {
  const clock = new VirtualClock();
  const { asked, ask } = questions();
  let isBehind = true;
  const answer = askedAgain(ask, clock, () => isBehind);
  await clock.advance(3_000);
  t.is(asked.length, 1);
  isBehind = false;
  await clock.advance(1_000);
  t.is(asked.length, 2);
  asked[1]?.resolve('by the new leader');
  t.is(await answer, 'by the new leader');
});
