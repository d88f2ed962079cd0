import test from 'ava';
import { Story } from '../../../src/core/host/testing/story.ts';
import { type EndedSessionsContext, endedSessions } from '../../../src/machines/gateway/ended-sessions.ts';

/** What is kept after the events. */
function after(...events: readonly object[]): EndedSessionsContext {
  let story = Story.begin(endedSessions, undefined);
  for (const event of events) story = story.next(event as never);
  return story.step.context as unknown as EndedSessionsContext;
}

const ended = (at: number, ...sessions: string[]) => ({ type: 'ENDED', at, sessions });
const heard = (sessions: Readonly<Record<string, number>>) => ({
  type: 'HEARD',
  from: 'attic',
  ended: sessions,
});

test('[C13,G18] of more ended sessions than are kept the oldest are forgotten, and nobody brings them back', (t) => {
  const newer = Array.from({ length: 320 }, (_, i) => ended(1_000 + i, `s${i}`));
  const kept = after(ended(1, 'oldest'), ...newer);
  t.is(Object.keys(kept.ended).length, 320);
  t.false('oldest' in kept.ended);
  t.deepEqual(after(...newer, heard({ oldest: 1 })), kept);
  t.deepEqual(after(heard(kept.ended)), kept);
});

test('[C13,G18] a host that hears of an ended session keeps it beside its own, each with its own time', (t) => {
  t.deepEqual(after(ended(5, 'a'), heard({ a: 9, b: 3 })).ended, { a: 5, b: 3 });
  t.deepEqual(after(ended(5, 'a'), ended(7, 'a')).ended, { a: 5 });
});
