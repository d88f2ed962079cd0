import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import { decideAdoption } from '../actors/adoption.ts';
import type { ActorDefinition } from '../actors/definition.ts';
import { type ActorState, applyRecord, type Decision, decide, decideInit } from '../actors/transition.ts';
import { decideMigration, eventOfToday, machineOf } from '../actors/versions.ts';
import { MachineStepper } from '../actors/xstate.ts';
import { isCoded } from '../errors/holdfast-error.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { parseActorRef } from '../ids.ts';
import { applyMergePatch, isObject } from '../json.ts';
import { ADOPT, INIT, type LogEvent, type LogRecord, MIGRATE } from '../log/record.ts';

interface Actor {
  /** Steps the machine that the actor is in: an earlier version's until its migration. */
  stepper: MachineStepper;
  readonly state: ActorState;
  snapshot: AnyMachineSnapshot;
  /** Its first event came before the record that started it: that one starts it no second time. */
  isEarly?: boolean;
}

/** The actors as they would have been: every event that is handed in is decided, and folded into their states. */
export class Imagined {
  readonly #steppers = new Map<AnyStateMachine, MachineStepper>();
  readonly #actors = new Map<string, Actor>();

  /**
   * @param base the states to begin with, which are changed from now on; those whose machine is not kept are migrated
   * @throws HF_MACHINE_VERSION; HF_LOG_CORRUPT a state is none of its machine's
   */
  constructor(definitions: ReadonlyMap<string, ActorDefinition>, base: readonly ActorState[]) {
    for (const state of base) {
      const definition = definitions.get(parseActorRef(state.ref).type);
      if (!definition) continue;
      const machine = machineOf(definition, state.version);
      const stepper = this.#stepper(machine ?? definition.machine);
      const snapshot = sound(state.seq, () => {
        if (!machine) fold(state, decideMigration(stepper, definition, state, state.at).decision);
        return stepper.restore(state.value, state.context, state.done);
      });
      this.#actors.set(state.ref, { stepper, state, snapshot, isEarly: false });
    }
  }

  /** The state that an actor would have by now. */
  state(ref: string): ActorState | undefined {
    return this.#actors.get(ref)?.state;
  }

  /**
   * The event as the machine takes it that the actor is in.
   *
   * @param altered the record's own event, or what it is imagined to have been
   * @returns undefined for a migration that has no work left: the actor is in today's machine already
   */
  eventOf({ actor, event, version }: LogRecord, altered: LogEvent, definition: ActorDefinition) {
    const machine = this.#actors.get(actor)?.stepper.machine ?? machineOf(definition, version);
    const isToday = machine === undefined || machine === definition.machine;
    if (event.type === ADOPT) return altered;
    if (isToday && event.type === MIGRATE) return undefined;
    return isToday ? eventOfToday(definition, altered, version) : altered;
  }

  /**
   * Decides an event. An actor that does not exist yet is started first.
   *
   * @param record its time, correlation and place are the event's
   * @param outcome the effect or timer that it answers
   */
  decide(
    record: LogRecord,
    event: LogEvent,
    outcome: string | undefined,
    definition: ActorDefinition,
  ): Decision {
    const actor = this.#actors.get(record.actor);
    // Only what the machine did not decide, and the outcome only where it reaches somebody.
    const { ignored: _i, stale: _s, failed: _f, outcome: _o, ...kept } = record;
    const rest = { ...kept, ...(outcome !== undefined && { outcome }) };
    if (event.type === ADOPT) return this.#adopt(record, event, definition);
    const isAnother = event.type === INIT && record.from === undefined && actor?.isEarly === false;
    if (!actor || isAnother) {
      const stepper = this.#stepper(machineOf(definition, record.version) ?? definition.machine);
      const isInit = event.type === INIT;
      const input = definition.input?.(parseActorRef(record.actor).key);
      const init: LogEvent = isInit ? event : { type: INIT, ...(input !== undefined && { input }) };
      const { decision, snapshot } = sound(record.seq, () => decideInit(stepper, init, record.at));
      const state = applyRecord(undefined, { ...rest, event: init, ...decision });
      this.#actors.set(record.actor, { stepper, snapshot, state, isEarly: !isInit });
      return isInit ? decision : this.decide(record, event, outcome, definition);
    }
    if (event.type === INIT) actor.isEarly = false;
    const isMigration = event.type === MIGRATE;
    if (isMigration) actor.stepper = this.#stepper(definition.machine);
    const { stepper, state } = actor;
    const { decision, snapshot } = isMigration
      ? decideMigration(stepper, definition, state, record.at)
      : decide(stepper, state, actor.snapshot, event, record.at, outcome);
    applyRecord(state, { ...rest, event: event.type === INIT ? { type: 'INIT' } : event, ...decision });
    actor.snapshot = snapshot;
    return decision;
  }

  /** In the machine of the record's version where that is kept and had not to migrate the state, otherwise in today's. */
  #adopt(record: LogRecord, event: LogEvent, definition: ActorDefinition): Decision {
    const { seq, at, actor: ref, version } = record;
    const left = isObject(event.state) ? event.state.version : undefined;
    const earlier = left === version ? machineOf(definition, version) : undefined;
    const stepper = this.#stepper(earlier ?? definition.machine);
    const before = this.#actors.get(ref)?.state;
    const today = earlier ? version : definition.version;
    const { decision, snapshot } = sound(seq, () =>
      decideAdoption(stepper, definition, ref, before, event, at, today),
    );
    const { ignored: _i, stale: _s, failed: _f, ...kept } = record;
    const state = applyRecord(before, { ...kept, event, version: today, ...decision });
    this.#actors.set(ref, { stepper, snapshot, state, isEarly: false });
    return decision;
  }

  #stepper(machine: AnyStateMachine): MachineStepper {
    const stepper = this.#steppers.get(machine) ?? new MachineStepper(machine);
    this.#steppers.set(machine, stepper);
    return stepper;
  }
}

/** @throws HF_LOG_CORRUPT the machine can do nothing with what a record holds */
function sound<T>(seq: number, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (isCoded(error)) throw error;
    const reason = `its machine throws on it: ${error instanceof Error ? error.message : String(error)}`;
    throw new KernelError('HF_LOG_CORRUPT', { seq, reason }, { cause: error });
  }
}

/** Takes a decision that no record holds into a state. */
function fold(state: ActorState, { to }: Decision): void {
  state.value = to.value;
  if (to.context) state.context = applyMergePatch(state.context, to.context);
}
