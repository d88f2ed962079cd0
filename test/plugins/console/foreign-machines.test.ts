import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import test, { type ExecutionContext } from 'ava';
import { ForeignDrawings } from '../../../src/plugins/console/statechart/foreign-drawings.ts';
import { type MachineGraph, machineGraph } from '../../../src/plugins/console/statechart/graph.ts';
import { doorMachine } from '../../support/door.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { doors } from './busy-doors.ts';
import { ConsoleRig } from './console-rig.ts';

/** Threads that this process starts from now on, by name. */
function countThreads(t: ExecutionContext): string[] {
  const started: string[] = [];
  const note = (message: unknown) => {
    const { worker } = message as { worker: { threadName?: string | null } };
    started.push(String(worker.threadName));
  };
  subscribe('worker_threads', note);
  t.teardown(() => unsubscribe('worker_threads', note));
  return started;
}

/** A machine whose states lead everywhere. */
function tangle(states: number): MachineGraph {
  const names = Array.from({ length: states }, (_, index) => `s${index}`);
  return {
    name: 'tangle',
    states: names.map((name) => ({ id: name, name, kind: 'atomic', states: [] })),
    transitions: names.flatMap((from, index) =>
      [1, 7, 13].map((step) => {
        const to = names[(index * 3 + step) % states] ?? from;
        return { from, to, event: `E${step}`, effects: [] };
      }),
    ),
  };
}

const patient = { deadlineMs: PATIENCE_MS, heapMiB: 256 };
const door = machineGraph(doorMachine);

test.serial('[C15] a machine that a plugin of others brings is drawn, on a thread, once', async (t) => {
  const rig = await ConsoleRig.start(t, { others: [doors()] });
  await rig.login();
  const threads = countThreads(t);
  const layouts = () => threads.filter((name) => name === 'console-layout').length;
  const shipped = await rig.ask('/api/machines/runtime.lifecycle');
  t.truthy(shipped.drawing, 'the build drew it');
  t.is((await rig.ask('/api/machines/console.access')).drawing, undefined, 'it has one state');
  t.is(layouts(), 0, 'nothing is laid out for the machines of the product');
  const [first, second] = await Promise.all([
    rig.ask('/api/machines/test.door'),
    rig.ask('/api/machines/test.door'),
  ]);
  t.deepEqual(first, second);
  t.deepEqual(first.drawing.states.map(({ id }: any) => id).sort(), ['broken', 'closed', 'open']);
  t.true(first.drawing.transitions.some(({ label }: any) => label.lines.includes('OPEN [known]')));
  await rig.ask('/api/machines/test.door');
  t.is(layouts(), 1);
});

test.serial(
  '[C15] a layout that takes too long or too much memory is given up, and is not tried at each look',
  async (t) => {
    const threads = countThreads(t);
    for (const limits of [
      { ...patient, deadlineMs: 0 },
      { ...patient, heapMiB: 4 },
    ]) {
      const drawings = new ForeignDrawings(limits);
      t.is(await drawings.of(door), undefined);
      t.is(await drawings.of(door), undefined);
    }
    t.is(threads.length, 2);
    const none = { ...door, transitions: [{ from: 'closed', to: 'nowhere', event: 'LEAVE', effects: [] }] };
    t.is(
      await new ForeignDrawings(patient).of(none),
      undefined,
      'ELK finds no layout for a state that is not there',
    );
  },
);

test.serial(
  '[C15] while a large machine is laid out the process goes on, one layout at a time',
  async (t) => {
    t.timeout(2 * PATIENCE_MS);
    const drawings = new ForeignDrawings(patient);
    let turns = 0;
    const ticking = setInterval(() => {
      turns += 1;
    }, 1);
    t.teardown(() => clearInterval(ticking));
    const large = drawings.of(tangle(60));
    let isOver = false;
    void large.then(() => {
      isOver = true;
    });
    const small = await drawings.of(door);
    t.true(isOver, 'the second begins after the first');
    t.is((await large)?.states.length, 60);
    t.is(small?.states.length, 3);
    t.true(turns > 20, `${turns} turns of the event loop`);
  },
);
