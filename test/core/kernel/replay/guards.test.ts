import test from 'ava';
import { and, assign, not, setup } from 'xstate';
import { MachineStepper } from '../../../../src/core/kernel/actors/xstate.ts';
import { candidatesOf } from '../../../../src/core/kernel/replay/guards.ts';
import { allMachines } from '../../../machines/all.ts';
import { machineSamples } from '../../../machines/samples.ts';

const machine = setup({
  types: {} as { context: { level: number }; events: { type: 'GO'; by: string } | { type: 'STOP' } },
  guards: {
    known: ({ event }) => event.type === 'GO' && event.by !== 'stranger',
    atLeast: ({ context }, { level }: { level: number }) => context.level >= level,
  },
}).createMachine({
  id: 'gate',
  context: { level: 1 },
  initial: 'shut',
  on: { STOP: '.shut' },
  states: {
    shut: {
      on: {
        GO: [
          { guard: { type: 'atLeast', params: { level: 5 } }, target: 'open' },
          {
            guard: and(['known', not({ type: 'atLeast', params: { level: 2 } })]),
            target: 'checking',
            actions: assign({ level: 3 }),
          },
        ],
      },
    },
    checking: {
      always: [
        { guard: ({ context }) => context.level > 3 },
        { guard: { type: 'atLeast', params: { level: 3 } }, target: 'open' },
      ],
    },
    open: {},
  },
});

function asked(value: string, event: { type: string; by?: string }, level = 1) {
  const state = { ref: 'gate/1', value, context: { level }, done: false } as never;
  return candidatesOf(machine, state, event as never).map(
    ({ state: where, guard, target, taken }) => `${where}: ${guard} ${taken ? `yes ${target}` : 'no'}`,
  );
}

test('[C7] the guards that were asked are told in order, with parameters and combined ones, and eventless ones behind', (t) => {
  t.deepEqual(asked('shut', { type: 'GO', by: 'ann' }), [
    'shut: atLeast no',
    'shut: and(known, not(atLeast)) yes checking',
    'checking: an unnamed guard no',
    'checking: atLeast yes open',
  ]);
  t.deepEqual(asked('shut', { type: 'GO', by: 'stranger' }), [
    'shut: atLeast no',
    'shut: and(known, not(atLeast)) no',
  ]);
  t.deepEqual(asked('open', { type: 'STOP' }), [': undefined yes shut']);
  t.deepEqual(asked('open', { type: 'GO' }), []);
  t.deepEqual(asked('gone', { type: 'GO' }), [], 'a state that the machine has not');
});

test('[C7] of every machine and every sample, one is taken exactly when the machine does something', (t) => {
  for (const [name, one] of Object.entries(allMachines)) {
    const stepper = new MachineStepper(one);
    const { input, events = [] } = machineSamples[name] ?? {};
    let step = stepper.initial(input);
    for (const event of events) {
      const before = { ref: 'a/b', value: step.value, context: step.context, done: step.done } as never;
      const next = stepper.next(step.snapshot, event);
      const taken = candidatesOf(one, before, event).some((candidate) => candidate.taken);
      if (!next.ignored) t.true(taken, `${name} ${event.type}`);
      step = next;
    }
  }
});
