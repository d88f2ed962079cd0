import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import { type Decision, decide, decideInit } from '../actors/decide.ts';
import type { ActorDefinition } from '../actors/definition.ts';
import { MachineStepper } from '../actors/machine-step.ts';
import { type ActorState, applyRecord } from '../actors/state.ts';
import { parseActorRef } from '../ids.ts';
import { jsonEqual } from '../json.ts';
import { INIT, type LogRecord } from '../log/record.ts';

/** Where a replay first decided otherwise than the log says. */
export interface Divergence {
  readonly record: LogRecord;
  /** What the log says, and what the machine says now. */
  readonly expected: Decision;
  readonly got: Decision;
  /** The most likely reason, in a sentence. */
  readonly hint: string;
}

export interface ReplayReport {
  readonly records: number;
  readonly actors: number;
  /** Records of actors whose type nobody registers; they are carried along unchecked. */
  readonly unchecked: number;
  readonly divergence?: Divergence;
}

interface Replayed {
  readonly stepper: MachineStepper;
  readonly definition: ActorDefinition;
  state: ActorState;
  snapshot: AnyMachineSnapshot;
}

/**
 * Runs recorded events through the machines again and compares every decision: states, contexts and effects, record
 * by record (C4). Feed it records in order, from an empty log or on top of the states of a snapshot.
 */
export class Replay {
  readonly #definitions: ReadonlyMap<string, ActorDefinition>;
  readonly #steppers = new Map<AnyStateMachine, MachineStepper>();
  readonly #actors = new Map<string, Replayed>();
  #records = 0;
  #unchecked = 0;
  #divergence: Divergence | undefined;

  /**
   * @param definitions the actors' definitions by type
   * @param base states to go on from, when the records do not begin at the first
   */
  constructor(definitions: ReadonlyMap<string, ActorDefinition>, base: Iterable<ActorState> = []) {
    this.#definitions = definitions;
    for (const state of base) {
      const definition = definitions.get(parseActorRef(state.ref).type);
      if (!definition) continue;
      const stepper = this.#stepper(definition);
      const snapshot = stepper.restore(state.value, state.context, state.done);
      this.#actors.set(state.ref, { definition, stepper, state, snapshot });
    }
  }

  /** @returns whether the record was decided as recorded; after the first divergence nothing more is compared */
  check(record: LogRecord): boolean {
    if (this.#divergence) return false;
    this.#records += 1;
    const definition = this.#definitions.get(parseActorRef(record.actor).type);
    if (!definition) {
      this.#unchecked += 1;
      return true;
    }
    const got = this.#decide(record, definition);
    if (got && same(record, got)) return true;
    const expected = decisionOf(record);
    const decided = got ?? { to: { value: '(the actor does not exist)' }, effects: [] };
    this.#divergence = { record, expected, got: decided, hint: hint(record, definition, expected, decided) };
    return false;
  }

  report(): ReplayReport {
    return {
      records: this.#records,
      actors: this.#actors.size,
      unchecked: this.#unchecked,
      ...(this.#divergence && { divergence: this.#divergence }),
    };
  }

  #decide(record: LogRecord, definition: ActorDefinition): Decision | undefined {
    const actor = this.#actors.get(record.actor);
    const event = this.#today(record, definition);
    if (record.event.type === INIT && !actor) {
      const stepper = this.#stepper(definition);
      const { decision, snapshot } = decideInit(stepper, event, record.at);
      this.#actors.set(record.actor, {
        definition,
        stepper,
        snapshot,
        state: applyRecord(undefined, record),
      });
      return decision;
    }
    if (!actor) return undefined;
    const { decision, snapshot } = decide(
      actor.stepper,
      actor.state,
      actor.snapshot,
      event,
      record.at,
      record.outcome,
    );
    applyRecord(actor.state, record);
    actor.snapshot = snapshot;
    return decision;
  }

  #today(record: LogRecord, definition: ActorDefinition): LogRecord['event'] {
    if (record.version === definition.version || !definition.upcast) return record.event;
    return definition.upcast(record.event, record.version);
  }

  #stepper({ machine }: ActorDefinition): MachineStepper {
    const stepper = this.#steppers.get(machine) ?? new MachineStepper(machine);
    this.#steppers.set(machine, stepper);
    return stepper;
  }
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

function same(record: LogRecord, got: Decision): boolean {
  return (
    record.ignored === got.ignored &&
    record.stale === got.stale &&
    (record.failed === undefined) === (got.failed === undefined) &&
    jsonEqual(record.to, got.to) &&
    jsonEqual(record.effects, got.effects)
  );
}

function hint(record: LogRecord, definition: ActorDefinition, expected: Decision, got: Decision): string {
  if (record.version !== definition.version) {
    return `the record was made by version ${record.version} of ${record.machine}, this is version ${definition.version}`;
  }
  if (got.failed) return `the machine throws now: ${got.failed}`;
  if (got.ignored && !expected.ignored) {
    return `the machine no longer reacts to ${record.event.type} in this state`;
  }
  if (!jsonEqual(expected.to.value, got.to.value))
    return 'a guard or target of this transition decides differently';
  if (!jsonEqual(expected.effects, got.effects)) return 'the same transition asks for other effects';
  return 'an assign computes another context; if the machine did not change, it is not pure';
}
