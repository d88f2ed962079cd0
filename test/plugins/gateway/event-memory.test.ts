import test from 'ava';
import { EventBudget, EventMemory } from '../../../src/plugins/gateway/local/event-memory.ts';

const MIB = 1024 * 1024;
const message = { jsonrpc: '2.0', method: 'x', params: { text: 'x'.repeat(MIB) } } as const;

test('[C5] sessions keep so much for their streams together, and those that were silent for longest forget theirs', async (t) => {
  const budget = new EventBudget();
  const sessions = Array.from({ length: 80 }, () => new EventMemory(budget));
  const ids: string[] = [];
  for (const session of sessions) ids.push(await session.storeEvent('s', message));
  const kept = await Promise.all(sessions.map((session, at) => session.getStreamIdForEventId(ids[at] ?? '')));
  t.is(kept.filter((stream) => stream === 's').length, 63);
  t.is(kept[0], undefined);
  t.is(kept.at(-1), 's');
});

test('[C5] a session that has ended gives its share back', async (t) => {
  const budget = new EventBudget();
  const first = new EventMemory(budget);
  const id = await first.storeEvent('s', message);
  for (let number = 0; number < 200; number += 1) {
    const session = new EventMemory(budget);
    await session.storeEvent('s', message);
    session.clear();
  }
  t.is(await first.getStreamIdForEventId(id), 's');
});
