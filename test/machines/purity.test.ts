import { setImmediate as turn } from 'node:timers/promises';
import test from 'ava';
import { type AnyStateMachine, and, assign, emit, not, or, raise, sendTo, setup } from 'xstate';
import { impurities } from '../../src/core/host/testing/index.ts';
import { impureNamesIn } from '../../src/core/host/testing/purity.ts';
import { effect } from '../../src/machines/effect.ts';
import { drive, Finding } from '../support/drive.ts';
import { machineFiles, machinesByFile, sourceOf, sourcesOf } from './all.ts';
import { machineSamples } from './samples.ts';

test('[C3] a file defines one machine at most, whose id is the path of the file', (t) => {
  for (const [file, machines] of machinesByFile) {
    const [machine, ...others] = machines;
    t.deepEqual(others, [], file);
    t.is(machine?.id, file.slice(0, -'.ts'.length).replaceAll('/', '-'));
  }
  t.true(machinesByFile.size > 20);
});

test('[C3] no source of a machine names time, chance or the outside', (t) => {
  for (const file of machineFiles) t.deepEqual(impureNamesIn(sourceOf(file)), [], file);
});

test('[C3] machines import xstate and each other only', (t) => {
  for (const file of machineFiles) {
    const imports = [...sourceOf(file).matchAll(/from '([^']+)'/g)].map(([, name]) => name!);
    const foreign = imports.filter((name) => name !== 'xstate' && !/^\.\.?\/[\w./-]+\.ts$/.test(name));
    t.deepEqual(foreign, [], file);
  }
});

for (const [file, [machine]] of machinesByFile) {
  if (!machine) continue;
  const name = machine.id;
  test(`[C3] machine ${name} uses nothing that replay could not repeat`, (t) => {
    t.deepEqual(impurities(machine), []);
  });

  // In turn, and after a turn of the event loop: results are told as they come, however slow the machine.
  test.serial(
    `[C3] machine ${name} is a function of context and event, the same through XState's public transition`,
    async (t) => {
      await turn();
      const source = sourcesOf(file);
      const visited = drive(machine, source, machineSamples[name]);
      const leaves = leafStates(machine);
      const missed = leaves.filter((leaf) => ![...visited].some((value) => value.includes(`"${leaf}"`)));
      t.log(
        `visited ${leaves.length - missed.length} of ${leaves.length} states; missed: ${missed.join(', ')}`,
      );
      // `verify` drives it a fifth as often, and sees less.
      const mayMiss = leaves.length / (process.env.HOLDFAST_FAST_TESTS ? 2 : 4);
      t.true(missed.length <= mayMiss, 'the drive sees too little of it: add samples');
    },
  );
}

/** States that an actor can rest in: a choice is left in the same step. */
function leafStates(machine: AnyStateMachine): string[] {
  const nodes = Object.values(machine.root.states).flatMap(function below(node): (typeof node)[] {
    const children = Object.values(node.states);
    return children.length > 0 ? children.flatMap(below) : [node];
  });
  return nodes
    .filter((node) => !node.always?.some(({ guard }) => guard === undefined))
    .map((node) => node.key);
}

// The check itself: each kind of impurity is found.

type Shape = { context: any; events: { type: string; [field: string]: any }; input: any };
const shape = { types: {} as Shape };
const machine = (config: any, parts: any = {}): AnyStateMachine =>
  setup({ ...shape, ...parts } as object).createMachine({
    id: 'suspect',
    context: { n: 0 },
    initial: 'a',
    states: { a: {} },
    ...config,
  } as never) as unknown as AnyStateMachine;
const onGo = (row: unknown) => ({ states: { a: { on: { GO: row } } } });
const assigns = (compute: (args: any) => unknown) => machine(onGo({ actions: assign(compute as never) }));

const suspects: [what: string, suspect: AnyStateMachine][] = [
  ['invoke', machine({ states: { a: { invoke: { src: 'child' } } } })],
  ['actor', machine({}, { actors: { child: {} } })],
  ['spawn', assigns(({ spawn }) => ({ child: spawn('child') }))],
  ['systemId', machine({ states: { a: { systemId: 'x' } } })],
  ['history', machine({ states: { a: {}, back: { type: 'history' } } })],
  ['unnamed delay 500', machine({ states: { a: { after: { 500: 'a' } } } })],
  ['unnamed delay soon', machine({ states: { a: { after: { soon: 'a' } } } })],
  ['inline action log', machine({ states: { a: { entry: function log() {} } } })],
  ['inline action without a name', machine({ states: { a: { exit: [() => {}] } } })],
  ['inline action sendTo', machine(onGo({ actions: sendTo('other', { type: 'X' }) }))],
  ['inline action raise', machine(onGo({ actions: raise({ type: 'X' } as never, { delay: 5 }) }))],
  ['inline action emit', machine(onGo([{ guard: () => true, actions: [emit({ type: 'X' })] }]))],
  ['action emit', machine({}, { actions: { shout: emit({ type: 'X' }) } })],
  ['unknown action sing', machine(onGo({ actions: 'sing' }))],
  ['unknown action hum', machine(onGo({ actions: { type: 'hum', params: {} } }))],
  ['unknown guard luck', machine(onGo({ guard: 'luck', target: 'a' }))],
  ['Date', assigns(() => ({ at: Date.now() }))],
  ['Math.random', machine(onGo({ guard: () => Math.random() > 0.5, target: 'a' }))],
  ['performance', machine({}, { delays: { soon: () => performance.now() } })],
  ['process', machine({ context: () => ({ pid: process.pid }) })],
  ['fetch', machine({}, { actions: { call: () => void fetch('http://[::1]/') } })],
  ['setTimeout', machine({}, { guards: { later: () => Boolean(setTimeout(() => {}, 0)) } })],
  ['crypto', machine(onGo({ actions: assign({ id: () => crypto.randomUUID() } as never) }))],
  ['await', machine(onGo({ actions: assign(async () => await Promise.resolve({})) }))],
  ['async', machine({}, { actions: { later: async () => {} } })],
  [
    'globalThis',
    machine(
      { states: { a: { entry: { type: 'go', params: () => ({ t: typeof globalThis }) } } } },
      { actions: { go: effect() } },
    ),
  ],
  ['console', machine({ always: [{ guard: () => console.log('x') === undefined, target: '.a' }] })],
];

for (const [what, suspect] of suspects) {
  test(`[C3] the check finds: ${what}`, (t) => {
    const found = impurities(suspect).map((impurity) => impurity.what);
    t.true(found.includes(what), `found ${JSON.stringify(found)}`);
  });
}

let calls = 0;
const history: unknown[] = [];
const driven: [what: string, finding: RegExp, suspect: AnyStateMachine][] = [
  [
    'a context changed in place',
    /^mutation/,
    assigns(({ context }) => Object.assign(context, { n: context.n + 1 })),
  ],
  [
    'a list inside the context changed in place',
    /^mutation/,
    machine({
      context: { list: [] },
      ...onGo({
        actions: assign(({ context }: any) => {
          context.list.push(1);
          return {};
        }),
      }),
    }),
  ],
  [
    'an event changed in place',
    /^mutation/,
    assigns(({ event }) => {
      event.seen = true;
      return {};
    }),
  ],
  [
    'state outside the machine',
    /^two results for the same input/,
    assigns(() => {
      calls += 1;
      return { n: calls };
    }),
  ],
  [
    'a context factory with state outside',
    /^two results for the same input/,
    machine({ context: () => ({ n: history.push(0) }) }),
  ],
  ['null in a context', /context\.n is not plain data, after init \{.*"GO"/, assigns(() => ({ n: null }))],
  ['a Map in a context', /context\.n is not plain data, after init$/, machine({ context: { n: new Map() } })],
  ['a function in a context', /context\.n\.f is not plain data/, assigns(() => ({ n: { f: () => 0 } }))],
  ['NaN in a context', /context\.n is not plain data/, assigns(() => ({ n: Number.NaN }))],
  [
    'a function in the parameters of an effect',
    /effects\.0\.params\.f is not plain data/,
    machine(onGo({ actions: { type: 'call', params: () => ({ f: sourceOf }) } }), {
      actions: { call: effect() },
    }),
  ],
  [
    'a decision by what a restart loses',
    /^another result after a restart/,
    machine({
      context: { n: 0, gone: undefined },
      ...onGo({ actions: assign(({ context }: any) => ({ n: 'gone' in context ? 1 : 2 })) }),
    }),
  ],
];

for (const [what, finding, suspect] of driven) {
  test(`[C3] the drive finds: ${what}`, (t) => {
    t.throws(() => drive(suspect, ''), { instanceOf: Finding, message: finding });
  });
}

test('[C3] the drive lets a pure machine pass', (t) => {
  t.notThrows(() =>
    drive(
      assigns(({ context, event }) => ({ n: context.n + 1, last: event.type })),
      '',
    ),
  );
});

test("[C3] every way to write a transition is chosen as by XState's public transition", (t) => {
  const assignsN = assign({ n: ({ context }: any) => context.n + 1 } as never);
  const bump = assign(({ context }: any) => ({ n: context.n + 1 }));
  const above = (n: number) => ({ type: 'above', params: { n } });
  const written = machine(
    {
      context: { n: 0, asked: [] },
      on: { ALL: { actions: { type: 'call', params: ({ context }: any) => ({ n: context.n }) } }, OUT: '.a' },
      states: {
        a: {
          initial: 'x',
          on: {
            GO: [
              { guard: above(6), target: 'b' },
              { guard: and([above(2), not('odd')]), actions: ['bump', { type: 'call', params: { two: 2 } }] },
              { guard: or(['both', ({ event }: any) => event.seen === true]), actions: ['call', bump] },
              {
                guard: { type: 'above', params: ({ context }: any) => ({ n: context.n - 2 }) },
                actions: assignsN,
              },
            ],
            ALL: { actions: [] },
            MORE: 'b',
          },
          states: {
            x: { on: { MORE: { target: 'y' }, NONE: undefined } },
            y: { on: { GO: { actions: bump } } },
          },
        },
        b: {
          type: 'parallel',
          states: { left: { on: { GO: { actions: bump } } }, right: { on: { GO: { actions: 'call' } } } },
          on: { MORE: 'c' },
        },
        c: {
          on: {
            'G.*': { actions: bump },
            '*': { actions: 'call' },
            THROWS: { guard: 'throws', target: 'a' },
          },
        },
      },
    },
    {
      actions: { call: effect(), bump },
      guards: {
        above: ({ context }: any, { n }: any) => context.n > n,
        odd: ({ context }: any) => context.n % 2 === 1,
        both: and(['odd', above(1)]),
        throws: () => JSON.parse('{'),
      },
    },
  );
  const events = ['GO', 'GO', 'ALL', 'NONE', 'MORE', 'OUT', 'G.x', 'THROWS'].map((type) => ({
    type,
    seen: true,
  }));
  const visited = drive(written, 'event.seen', { events });
  t.deepEqual([...visited].sort(), ['"c"', '{"a":"x"}', '{"a":"y"}', '{"b":{"left":{},"right":{}}}']);
});
