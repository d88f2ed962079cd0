import test from 'ava';
import fc from 'fast-check';
import { adoptionEvents, decideAdoption } from '../../../../src/core/kernel/actors/adoption.ts';
import { defineActor } from '../../../../src/core/kernel/actors/definition.ts';
import {
  type ActorState,
  applyRecord,
  type Decided,
  type Decision,
  decide,
  decideInit,
  recordOf,
} from '../../../../src/core/kernel/actors/transition.ts';
import { MachineStepper } from '../../../../src/core/kernel/actors/xstate.ts';
import type { LogEvent } from '../../../../src/core/kernel/log/record.ts';
import { Replay } from '../../../../src/core/kernel/replay/verify.ts';
import { allMachines } from '../../../machines/all.ts';
import { machineSamples } from '../../../machines/samples.ts';
import { runs } from '../../../support/runs.ts';

const REF = 'test.any/one';

/** One move of a walk: which of the armed timers, open effects or events comes next, and how long after the last. */
interface Move {
  readonly kind: 'timer' | 'effect' | 'event';
  readonly pick: number;
  readonly afterMs: number;
}

const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.record({
    kind: fc.constantFrom('timer' as const, 'effect' as const, 'event' as const, 'event' as const),
    pick: fc.nat(9_999),
    afterMs: fc.constantFrom(0, 1, 500, 40_000),
  }),
  { minLength: 2, maxLength: 30, size: 'max' },
);

/** An event with the effect or timer that it answers: by its place among those that are open, for ids differ. */
interface Chosen {
  readonly event: LogEvent;
  readonly timer?: string;
  readonly effect?: number;
}

function choose(state: ActorState, events: readonly LogEvent[], { kind, pick }: Move): Chosen | undefined {
  const timers = Object.keys(state.timers);
  const effects = Object.values(state.effects);
  if (kind === 'timer' && timers.length > 0) {
    const timer = timers[pick % timers.length]!;
    return { event: { type: timer }, timer };
  }
  if (kind === 'effect' && effects.length > 0) {
    const effect = pick % effects.length;
    return { event: { type: 'effect.done', effect: effects[effect]!.type }, effect };
  }
  return events.length > 0 ? { event: events[pick % events.length]! } : undefined;
}

/** An actor of one host, decided and folded as the actor system does it. */
class Host {
  readonly #stepper: MachineStepper;
  readonly #definition;
  readonly replay: Replay;
  #seq: number;
  #snapshot: Decided['snapshot'] | undefined;
  state: ActorState | undefined;

  constructor(machine: ReturnType<typeof machineOf>, seq: number) {
    this.#definition = defineActor({ type: 'test.any', machine, version: 1 });
    this.#stepper = new MachineStepper(machine);
    this.replay = new Replay(new Map([['test.any', this.#definition]]));
    this.#seq = seq;
  }

  begin(event: LogEvent, at: number): Decision {
    return this.#record(event, at, decideInit(this.#stepper, event, at));
  }

  adopt(event: LogEvent, at: number): Decision {
    const decided = decideAdoption(this.#stepper, this.#definition, REF, this.state, event, at);
    return this.#record(event, at, decided);
  }

  take({ event, timer, effect }: Chosen, at: number): Decision {
    const state = this.state!;
    const open = effect === undefined ? undefined : Object.keys(state.effects)[effect];
    const outcome = timer === undefined ? open : state.timers[timer]?.id;
    return this.#record(
      event,
      at,
      decide(this.#stepper, state, this.#snapshot!, event, at, outcome),
      outcome,
    );
  }

  #record(event: LogEvent, at: number, { decision, snapshot }: Decided, outcome?: string): Decision {
    this.#seq += 1;
    const from = this.state && { from: this.state.value };
    const occasion = { at, actor: REF, event, ...from, correlation: 'c', outcome };
    const record = structuredClone(recordOf(this.#seq, this.#definition, occasion, decision));
    this.state = applyRecord(this.state, record);
    this.#snapshot = snapshot;
    if (!this.replay.check(record)) throw new Error(`replayed otherwise: ${JSON.stringify(record)}`);
    return decision;
  }
}

const machineOf = (id: string) => allMachines[id]!;

/** Of a state what both hosts must agree on: ids and the times at which something was asked for are each host's own. */
function compared({ value, context, done, timers, effects }: ActorState, at: number) {
  const deadlines = Object.entries(timers).map(([name, timer]) => [name, Math.max(timer.at, at)]);
  return {
    ...{ value, context, done, deadlines: Object.fromEntries(deadlines) },
    effects: Object.values(effects).map(({ type, params }) => ({ type, params })),
  };
}

for (const id of Object.keys(allMachines)) {
  test(`[C13,C3] ${id}: who goes on from an adopted state decides as who left it would have`, (t) => {
    const samples = machineSamples[id] ?? {};
    const given = samples.events ?? [];
    const bare = machineOf(id)
      .events.filter((type) => !type.includes('*') && !given.some((event) => event.type === type))
      .map((type) => ({ type }));
    const input = samples.input === undefined ? {} : { input: samples.input };
    let goneOn = 0;
    fc.assert(
      fc.property(moves, fc.nat(15), fc.boolean(), (list, cut, hadOne) => {
        let at = 1_000;
        const source = new Host(machineOf(id), 0);
        source.begin({ type: 'init', ...input }, at);
        const events = [...given, ...given, ...bare];
        const steps = (part: readonly Move[], each: (chosen: Chosen, now: number) => void) => {
          for (const move of part) {
            at += move.afterMs;
            const chosen = choose(source.state!, events, move);
            if (chosen) each(chosen, at);
          }
        };
        steps(list.slice(0, cut), (chosen, now) => void source.take(chosen, now));

        const successor = new Host(machineOf(id), 70);
        // It may have a state of its own, from when it held the actor long ago.
        if (hadOne) successor.begin({ type: 'init', ...input }, at);
        const states = [JSON.parse(JSON.stringify(source.state))];
        const from = { host: 'attic', incarnation: '1', seq: 9, hash: 'h', states };
        const [{ event } = {}] = adoptionEvents(from, at);
        successor.adopt(JSON.parse(JSON.stringify(event)), at);
        t.deepEqual(compared(successor.state!, at), compared(source.state!, at));

        steps(list.slice(cut), (chosen, now) => {
          goneOn += 1;
          const there = source.take(chosen, now);
          const here = successor.take(chosen, now);
          const both = [here, there].map(({ failed, ...rest }) => ({
            ...rest,
            failed: failed !== undefined,
          }));
          t.deepEqual(both[0], both[1], `${JSON.stringify(chosen)} at ${now}`);
        });
        t.deepEqual(compared(successor.state!, at), compared(source.state!, at));
      }),
      { numRuns: runs(25), seed: 20_260_101 },
    );
    t.true(goneOn > 0);
  });
}
