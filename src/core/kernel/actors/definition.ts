import type { AnyStateMachine } from 'xstate';
import type { Json, JsonObject } from '../json.ts';
import type { LogEvent, LogRecord, StateValue } from '../log/record.ts';

/** How soon a transition's record must be durable before its effects run (C2). */
export type Durability = 'sync' | 'batched';

/** Where a machine stands and what it knows. */
export interface MachineState {
  readonly value: StateValue;
  readonly context: JsonObject;
}

/** Everything the actor system needs to know of a type of actor. The whole contract. */
export interface ActorDefinition {
  /** Dotted type, e.g. `reconciler.leg`; an actor is addressed `<type>/<key>`. */
  readonly type: string;
  /** A pure machine of `src/machines`, or of a plugin's own. */
  readonly machine: AnyStateMachine;
  /** Version of the machine's meaning; raise it when recorded events would decide differently. */
  readonly version: number;
  /** `sync` unless a crash may cost the last moments of this actor; a function decides record by record. */
  readonly durability?: Durability | ((record: LogRecord) => Durability);
  /** Input of an actor that is first met by its key; it is recorded with the `init` event. */
  readonly input?: (key: string) => Json;
  /**
   * Takes the state that an older version left when the log was last written; undefined refuses a version that is not
   * known. Pure. The runtime calls it once an actor, at the start, and records what it gives.
   */
  readonly migrate?: (state: MachineState, fromVersion: number) => MachineState | undefined;
  /** The machines of older versions, by version: replay compares what they recorded with what they decide. */
  readonly earlier?: Readonly<Record<number, AnyStateMachine>>;
  /** An event that an older version recorded in today's shape: `replay what-if` asks today's machine about it. */
  readonly upcast?: (event: LogEvent, fromVersion: number) => LogEvent;
  /**
   * One of its records in an operator's words, for `holdfast log`: some 40 characters, e.g. `lacks fd00::1/64, adds
   * it`. Undefined leaves the wording to the fields of the event; an empty text marks the record as routine, which
   * is shown only with `--all`. Pure, and total: any record of this type may come.
   */
  readonly describe?: (record: LogRecord) => string | undefined;
}

/**
 * Declares a type of actor. Its effects are not listed: they are the plain named actions of the
 * machine's `setup`.
 */
export function defineActor(definition: ActorDefinition): ActorDefinition {
  return Object.freeze({ durability: 'sync', ...definition });
}

/** The effect types a machine may ask for: its named actions that are not XState's own (`assign`). */
export function effectTypes(machine: AnyStateMachine): string[] {
  return Object.entries(machine.implementations.actions)
    .filter(([, action]) => typeof action === 'function' && !('resolve' in action))
    .map(([type]) => type);
}
