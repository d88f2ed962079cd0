import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import { decideAdoption } from '../actors/adoption.ts';
import type { ActorDefinition } from '../actors/definition.ts';
import { type ActorState, applyRecord, type Decision, decide, decideInit } from '../actors/transition.ts';
import { decideMigration, machineOf } from '../actors/versions.ts';
import { MachineStepper } from '../actors/xstate.ts';
import { parseActorRef } from '../ids.ts';
import { isObject, jsonEqual } from '../json.ts';
import { ADOPT, INIT, type LogRecord, MIGRATE } from '../log/record.ts';

/** Where a replay first decided otherwise than the log says. @experimental */
export interface Divergence {
  readonly record: LogRecord;
  /** What the log says, and what the machine says now. */
  readonly expected: Decision;
  readonly got: Decision;
  /** The most likely reason, in a sentence. */
  readonly hint: string;
}

/** Records that nothing here can decide again; they are carried along. */
export interface NotCompared {
  readonly type: string;
  /** The version of the machine that made these records. */
  readonly version: number;
  /** The version registered here; absent when nobody registers the type. */
  readonly current?: number;
  readonly records: number;
}

/** What a replay of a log found. @experimental */
export interface ReplayReport {
  readonly records: number;
  readonly actors: number;
  /** Records of actor types that nobody registers, and of versions whose machine is not kept under `earlier`. */
  readonly notCompared: readonly NotCompared[];
  readonly divergence?: Divergence;
  /** Records behind a gap that a repair left, before the next states that were saved: nothing says what was decided from. */
  readonly unknown?: number;
}

interface Replayed {
  readonly state: ActorState;
  /** XState's snapshot after the newest record, where that was decided by `stepper`. */
  stepper?: MachineStepper;
  snapshot?: AnyMachineSnapshot;
}

/**
 * Runs recorded events through the machines again and compares every decision: states, contexts and effects, record
 * by record (C4), each by the machine of the version that made it. Feed it records in order, from an empty log or on
 * top of the states of a snapshot.
 *
 * @experimental
 */
export class Replay {
  readonly #definitions: ReadonlyMap<string, ActorDefinition>;
  readonly #steppers = new Map<AnyStateMachine, MachineStepper>();
  readonly #actors = new Map<string, Replayed>();
  readonly #notCompared = new Map<string, NotCompared>();
  #records = 0;
  #divergence: Divergence | undefined;

  /**
   * @param definitions the actors' definitions by type
   * @param base states to go on from, when the records do not begin at the first
   */
  constructor(definitions: ReadonlyMap<string, ActorDefinition>, base: Iterable<ActorState> = []) {
    this.#definitions = definitions;
    for (const state of base) this.#actors.set(state.ref, { state });
  }

  /** @returns whether the record was decided as recorded; after the first divergence nothing more is compared */
  check(record: LogRecord): boolean {
    if (this.#divergence) return false;
    this.#records += 1;
    const definition = this.#definitions.get(parseActorRef(record.actor).type);
    const machine = definition && machineOf(definition, record.version);
    // A migration is decided by the definition, and those of older ones are not kept.
    if (!machine || (migrates(record) && record.version !== definition.version)) {
      this.#carry(record, definition);
      return true;
    }
    const got = this.#decide(record, machine, definition);
    if (sameDecision(record, got)) return true;
    const expected = decisionOf(record);
    this.#divergence = { record, expected, got, hint: hintOf(record, machine, expected, got) };
    return false;
  }

  report(): ReplayReport {
    return {
      records: this.#records,
      actors: this.#actors.size,
      notCompared: [...this.#notCompared.values()],
      ...(this.#divergence && { divergence: this.#divergence }),
    };
  }

  #carry(record: LogRecord, definition: ActorDefinition | undefined): void {
    const { type } = parseActorRef(record.actor);
    const { version } = record;
    const key = `${type} ${version}`;
    const records = (this.#notCompared.get(key)?.records ?? 0) + 1;
    const current = definition && { current: definition.version };
    this.#notCompared.set(key, { type, version, ...current, records });
    const actor = this.#actors.get(record.actor);
    this.#actors.set(record.actor, { state: applyRecord(actor?.state, record) });
  }

  #decide(record: LogRecord, machine: AnyStateMachine, definition: ActorDefinition): Decision {
    const { actor: ref, event, at, outcome } = record;
    const stepper = this.#stepper(machine);
    const actor = this.#actors.get(ref);
    // One that a takeover dropped begins anew.
    const isFirst = event.type === INIT && record.from === undefined;
    if (!actor && !isFirst && event.type !== ADOPT) return nowhere('the actor does not exist');
    try {
      if (event.type === ADOPT) {
        const { decision, snapshot } = decideAdoption(
          stepper,
          definition,
          ref,
          actor?.state,
          event,
          at,
          record.version,
        );
        this.#actors.set(ref, { stepper, snapshot, state: applyRecord(actor?.state, record) });
        return decision;
      }
      if (!actor || isFirst) {
        const { decision, snapshot } = decideInit(stepper, event, at);
        this.#actors.set(ref, { stepper, snapshot, state: applyRecord(undefined, record) });
        return decision;
      }
      const { state } = actor;
      const { decision, snapshot } =
        event.type === MIGRATE
          ? decideMigration(stepper, definition, state, at)
          : decide(stepper, state, snapshotOf(actor, stepper), event, at, outcome);
      applyRecord(state, record);
      actor.stepper = stepper;
      actor.snapshot = snapshot;
      return decision;
    } catch (error) {
      return nowhere(error instanceof Error ? error.message : String(error));
    }
  }

  #stepper(machine: AnyStateMachine): MachineStepper {
    const stepper = this.#steppers.get(machine) ?? new MachineStepper(machine);
    this.#steppers.set(machine, stepper);
    return stepper;
  }
}

/** What the actor's machine has in the place of its recorded state. @throws it has no such state */
function snapshotOf({ stepper, snapshot, state }: Replayed, wanted: MachineStepper): AnyMachineSnapshot {
  if (snapshot && stepper === wanted) return snapshot;
  return wanted.restore(state.value, state.context, state.done);
}

function nowhere(failed: string): Decision {
  return { to: { value: '(none)' }, failed, effects: [] };
}

/** The part of a record that its machine determined. */
export function decisionOf(record: LogRecord): Decision {
  const { to, effects, ignored, stale, failed } = record;
  return {
    to,
    effects,
    ...(ignored && { ignored }),
    ...(stale && { stale }),
    ...(failed !== undefined && { failed }),
  };
}

/** @returns whether two decisions are the same; of two that failed, whatever the machine threw */
export function sameDecision(a: Decision, b: Decision): boolean {
  return (
    a.ignored === b.ignored &&
    a.stale === b.stale &&
    (a.failed === undefined) === (b.failed === undefined) &&
    jsonEqual(a.to, b.to) &&
    jsonEqual(a.effects, b.effects)
  );
}

function hintOf(
  { event, version }: LogRecord,
  machine: AnyStateMachine,
  expected: Decision,
  got: Decision,
): string {
  const raise = `if that is meant, raise its version and keep version ${version} under \`earlier\``;
  if (got.failed) return `the machine throws now: ${got.failed}`;
  if (!got.stale && !OWN_EVENTS.includes(event.type) && !handles(machine, event.type))
    return `${event.type} is an unknown event: the machine names it nowhere; ${raise}`;
  if (got.ignored && !expected.ignored)
    return `the machine no longer reacts to ${event.type} in this state; ${raise}`;
  if (!jsonEqual(expected.to.value, got.to.value))
    return `a guard or target of this transition decides otherwise; ${raise}; if the machine did not change, the guard is not pure`;
  if (!jsonEqual(expected.effects, got.effects))
    return `the same transition asks for other effects; ${raise}`;
  return `an assign computes another context; ${raise}; if the machine did not change, it is not pure`;
}

/** Events of the actor system itself, which no machine names. */
const OWN_EVENTS = [INIT, MIGRATE, ADOPT];

/** Whether a definition's `migrate` had a part in a record. */
function migrates({ event, version }: LogRecord): boolean {
  if (event.type === MIGRATE) return true;
  return event.type === ADOPT && isObject(event.state) && event.state.version !== version;
}

function handles({ events }: AnyStateMachine, type: string): boolean {
  return events.some((handled) => handled === type || handled === '*');
}
