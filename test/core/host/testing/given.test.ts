import { AssertionError } from 'node:assert';
import test from 'ava';
import { assign, setup } from 'xstate';
import { elapsed, given } from '../../../../src/core/host/testing/index.ts';
import { effect } from '../../../../src/machines/effect.ts';
import { doorMachine } from '../../../support/door.ts';

const door = setup({
  types: {
    context: {} as { closeMs: number; by?: string; visits: string[] },
    events: {} as { type: 'OPEN'; by: string } | { type: 'VANDALISE' },
    input: {} as { closeMs: number } | undefined,
  },
  delays: { close: ({ context }) => context.closeMs },
  actions: { lamp: effect<{ on: boolean }>() },
}).createMachine({
  id: 'door',
  context: ({ input }) => ({ closeMs: input?.closeMs ?? 1_000, visits: [] }),
  initial: 'closed',
  states: {
    closed: {
      entry: { type: 'lamp', params: { on: false } },
      on: { OPEN: { target: 'open', actions: assign({ by: ({ event }) => event.by }) } },
    },
    open: {
      after: { close: 'closed' },
      on: {
        VANDALISE: {
          actions: assign(({ context }) => {
            context.visits.push('vandal');
            return {};
          }),
        },
      },
    },
  },
});

const off = { type: 'lamp', params: { on: false } };

function failure(run: () => unknown): AssertionError {
  try {
    run();
  } catch (error) {
    if (error instanceof AssertionError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

test('the example of the documentation holds', (t) => {
  given(door, { input: { closeMs: 50 }, events: [{ type: 'OPEN', by: 'ann' }] })
    .when(elapsed('close'))
    .then({ state: 'closed', effects: [{ type: 'lamp', params: { on: false } }], timers: {} });
  t.pass();
});

test('a story goes on after each then, with its timers', (t) => {
  given(door, { input: { closeMs: 50 } })
    .initially({ state: 'closed', effects: [off], timers: {} })
    .when({ type: 'OPEN', by: 'ann' })
    .then({ state: 'open', context: { by: 'ann', visits: [] }, timers: { close: 50 } })
    .when(elapsed('close'))
    .then({ state: 'closed', effects: [off], timers: {}, context: { by: 'ann' } });
  t.pass();
});

test('leaving a state takes its timers away, re-entering it arms them anew', (t) => {
  given(doorMachine, { events: [{ type: 'OPEN', by: 'ann' }] })
    .when({ type: 'OPEN', by: 'bob' })
    .then({ state: 'open', timers: { closing: 1_000 } })
    .when({ type: 'CLOSE' })
    .then({ state: 'closed', timers: {} });
  t.pass();
});

test('a wrong expectation names the story, what was expected and what was got', (t) => {
  const error = failure(() =>
    given(door, { events: [{ type: 'OPEN', by: 'ann' }] })
      .when(elapsed('close'))
      .then({
        state: 'open',
        context: { by: 'bob', visits: undefined },
        timers: { close: 1 },
        ignored: true,
      }),
  );
  t.is(
    error.message,
    [
      'given door after OPEN',
      'when {"type":"elapsed","timer":"close"}',
      'then',
      '  state',
      '    expected "open"',
      '    got      "closed"',
      '  effects',
      '    expected none',
      '    got      {"type":"lamp","params":{"on":false}}',
      '  context.by',
      '    expected "bob"',
      '    got      "ann"',
      '  context.visits',
      '    expected nothing',
      '    got      none',
      '  timers',
      '    expected {"close":1}',
      '    got      {}',
      '  ignored',
      '    expected true',
      '    got      false',
    ].join('\n'),
  );
});

test('the order of effects counts, and a list shows one effect a line', (t) => {
  const both = [off, { type: 'bell' }];
  const error = failure(() => given(door).initially({ state: 'closed', effects: both }));
  t.true(error.message.startsWith('given door, initially\n  effects\n'));
  t.true(
    error.message.includes(
      'expected {"type":"lamp","params":{"on":false}}\n             {"type":"bell"}\n    got      {"type"',
    ),
  );
  t.deepEqual(error.expected, { effects: both });
});

test('a time that the machine does not wait for cannot elapse', (t) => {
  const closed = failure(() => given(door).when(elapsed('close')));
  t.is(closed.message, 'time close cannot elapse: in state "closed" the machine waits for nothing');
  const open = given(door, { events: [{ type: 'OPEN', by: 'ann' }] });
  t.regex(failure(() => open.when(elapsed('lunch'))).message, /waits for close$/);
});

test('[C3] a machine that changes its context in place fails', (t) => {
  const open = given(door, { events: [{ type: 'OPEN', by: 'ann' }] });
  t.throws(() => open.when({ type: 'VANDALISE' }), { instanceOf: TypeError, message: /not extensible/ });
});

test('an event that the state has no use for can be expected', (t) => {
  given(doorMachine).when({ type: 'CLOSE' }).then({ state: 'closed', ignored: true });
  given(doorMachine).when({ type: 'OPEN', by: 'stranger' }).then({ state: 'closed', ignored: true });
  t.pass();
});

test('awaiting a sentence by mistake is reported', async (t) => {
  const when = given(door).when({ type: 'OPEN', by: 'ann' });
  await t.throwsAsync(async () => await (when as unknown), { message: /is not a promise/ });
});
