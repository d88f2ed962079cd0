import test from 'ava';
import { given } from '../../../src/core/host/testing/index.ts';
import { type IngestKeyEvent, ingestKey } from '../../../src/machines/collector/ingest-key.ts';

const renewed = (order: number, from: string, to: string): IngestKeyEvent => ({
  type: 'RENEWED',
  ...{ order, from, to },
});
const retired = (order: number, current: string): IngestKeyEvent => ({ type: 'RETIRED', order, current });
const heard = (
  order: number,
  current: string,
  more: { readonly previous?: string; readonly retired?: string } = {},
): IngestKeyEvent => ({ type: 'HEARD', from: 'attic', keys: { order, current, ...more } });
const stores = (from: string, to: string) => [{ type: 'collector.store_shared_key', params: { from, to } }];

test('[C13,O9] a host that hears of a rotation amid its overlap admits by both keys, and hears when the one before is retired', (t) => {
  t.notThrows(() =>
    given(ingestKey)
      .when(heard(3, 'second', { previous: 'first' }))
      .then({
        state: 'overlap',
        context: { order: 3, current: 'second', previous: 'first' },
        effects: stores('first', 'second'),
      })
      .when(retired(4, 'second'))
      .then({ state: 'one', context: { order: 4, retired: 'first' } }),
  );
});

test('[C13,O9] a host that hears of a rotation that is over admits by the new key alone', (t) => {
  const over = heard(4, 'second', { retired: 'first' });
  const context = { order: 4, current: 'second', retired: 'first' };
  t.notThrows(() =>
    given(ingestKey)
      .when(over)
      .then({ state: 'one', context, effects: stores('first', 'second') }),
  );
  t.notThrows(() =>
    given(ingestKey, { events: [renewed(3, 'first', 'second')] })
      .when(over)
      .then({ state: 'one', context, effects: stores('second', 'second') }),
  );
});

test('[C13,O9] what a host hears that knows less brings no key back', (t) => {
  const ahead = { events: [renewed(3, 'first', 'second'), retired(4, 'second')] };
  const context = { order: 4, current: 'second', retired: 'first' };
  for (const stale of [heard(0, 'first'), heard(3, 'second', { previous: 'first' }), heard(3, 'zebra')])
    t.notThrows(() => given(ingestKey, ahead).when(stale).then({ state: 'one', context }));
});

test('[C13,O9] of two hosts that know as much and not the same, both take the same', (t) => {
  const context = { current: 'c' };
  const taking = (own: string) => given(ingestKey, { events: [renewed(3, 'first', own)] });
  const other = (current: string) => heard(3, current, { previous: 'first' });
  t.notThrows(() =>
    taking('b')
      .when(other('c'))
      .then({ state: 'overlap', context, effects: stores('b', 'c') }),
  );
  t.notThrows(() => taking('c').when(other('b')).then({ state: 'overlap', context }));
});
