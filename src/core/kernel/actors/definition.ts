import type { AnyStateMachine, EventFrom, InputFrom } from 'xstate';
import type { Envelope } from '../../../bus/bus.ts';
import type { Topic } from '../../../bus/topic.ts';
import { type JsonObject, jsonEqual } from '../json.ts';
import {
  type ADOPT,
  delayOf,
  type INIT,
  type LogEvent,
  type LogRecord,
  type MIGRATE,
  type StateValue,
} from '../log/record.ts';

/** How soon a transition's record must be durable before its effects run (C2). */
export type Durability = 'sync' | 'batched';

/** Where a machine stands and what it knows, as another version recorded it. @public */
export interface MachineState {
  readonly value: StateValue;
  readonly context: JsonObject;
}

/** What another host knows of an actor. @public */
export interface HeardState extends MachineState {
  readonly from: string;
  /** Of its machine there. */
  readonly version: number;
  /** When this host hears it, by its own clock; epoch milliseconds. */
  readonly at: number;
  /** By how much that clock is ahead of the other host's, milliseconds. */
  readonly aheadMs: number;
}

/** The events that a machine declares in its types. @public */
export type EventOf<M extends AnyStateMachine> = EventFrom<M>;

/** An event that no machine's types have checked. */
export interface UncheckedEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/**
 * A record of an actor whose machine is known: its event is one that the machine declares, or the system's own.
 *
 * @public
 */
export type RecordOf<M extends AnyStateMachine> = LogRecord & {
  readonly event:
    | EventOf<M>
    | { readonly type: typeof INIT }
    | { readonly type: typeof MIGRATE }
    | { readonly type: typeof ADOPT };
};

/**
 * What `describe` returns of a routine record: `holdfast log` shows its line only with `--all`. A record that changed a state,
 * requested an effect or failed is shown all the same, with its fields.
 *
 * @public
 */
export const HIDDEN = '';

/** What `describe` returns where it has no words of its own: the line shows the event's type and fields. @public */
export const DEFAULT_WORDS = undefined;

/**
 * Words of records that are routine unless they changed something: then their line says what.
 *
 * @param words by type of event; those of timers by the name of their delay
 * @returns `HIDDEN` for a record that changed no state and requested no effect
 */
export function routineWords(
  { event, from, to, effects, ignored }: LogRecord,
  words: Readonly<Record<string, string>>,
): string | undefined {
  const name = delayOf(event.type) ?? event.type;
  const own = Object.hasOwn(words, name) ? words[name] : DEFAULT_WORDS;
  if (own === DEFAULT_WORDS && ignored) return DEFAULT_WORDS;
  const isSame =
    from !== undefined && to.context === undefined && to.done !== true && jsonEqual(from, to.value);
  return isSame && effects.length === 0 ? HIDDEN : own;
}

/**
 * Everything the actor system needs to know of a type of actor, and the handle by which others send to its actors and
 * read them: the compiler checks events and contexts against the machine.
 *
 * @public
 */
export interface ActorDefinition<M extends AnyStateMachine = AnyStateMachine> {
  /** Dotted type, e.g. `lamp.bulb`; an actor is addressed `<type>/<key>`. */
  readonly type: string;
  /** A pure machine of `src/machines`, or of a plugin's own. */
  readonly machine: M;
  /** Version of the machine's meaning; raise it when recorded events would decide differently. */
  readonly version: number;
  /** `sync` unless a crash may cost the last moments of this actor; a function decides record by record. */
  readonly durability?: Durability | ((record: LogRecord) => Durability);
  /** Input of an actor that is first met by its key; it is recorded with the `init` event. */
  readonly input?: (key: string) => InputFrom<M>;
  /**
   * Takes the state that an older version left when the log was last written; undefined refuses a version that is not
   * known. Pure. The runtime calls it once an actor, at the start, and records what it gives.
   */
  readonly migrate?: (state: MachineState, fromVersion: number) => MachineState | undefined;
  /** The machines of older versions, by version: replay compares what they recorded with what they decide. */
  readonly earlier?: Readonly<Record<number, AnyStateMachine>>;
  /** An event that an older version recorded in today's shape: `replay what-if` asks today's machine about it. */
  readonly upcast?: (event: LogEvent, fromVersion: number) => EventOf<M>;
  /**
   * Of actors that live on every host of a cluster: the event by which one hears what another host knows of it, after one of them has
   * missed messages or joined; undefined when that is nothing new. What another host sends is checked here, and what throws counts as not
   * understood: the hosts have releases that do not go together. Pure.
   */
  readonly hear?: (own: MachineState | undefined, heard: HeardState) => EventOf<M> | undefined;
  /**
   * What the other hosts are told of it, where that is not its whole context: what `hear` of theirs gets. `changed` of it is the order
   * of the newest message that changed it. Pure.
   */
  readonly tell?: (own: MachineState) => JsonObject;
  /** What its records mean. */
  readonly describe?: Words<M>;
}

/**
 * One of an actor's records in an operator's words, for `holdfast log`: some 40 characters, e.g. `lacks fd00::1/64, adds
 * it`; or `HIDDEN`, or `DEFAULT_WORDS`. Pure, and total: any record of this type may come.
 *
 * @public
 */
export type Words<M extends AnyStateMachine = AnyStateMachine> = {
  describe(record: RecordOf<M>): string | undefined;
}['describe'] & {
  /** Which of the records say that something failed or was refused; none unless set. */
  readonly problem?: ProblemTest<M>;
};

/**
 * Finds the records that say that something failed or was refused. That a machine threw, or that an effect failed or was
 * lost, counts in any case.
 *
 * @public
 */
export interface ProblemTest<M extends AnyStateMachine = AnyStateMachine> {
  /** Texts of which the JSON of each such record has one: others are not read. */
  readonly marks: readonly string[];
  is(record: RecordOf<M>): boolean;
}

/**
 * The records of some events say that something failed or was refused.
 *
 * @example describeDoor.problem = problemEvents('BROKEN_OPEN');
 * @param types of the events
 * @public
 */
export function problemEvents(...types: readonly string[]): ProblemTest {
  return {
    marks: types.map((type) => JSON.stringify(type)),
    is: ({ event }) => types.includes(event.type),
  };
}

/** What describes the records of several types of actors, by type. */
export type RecordWords = Readonly<Record<string, Words | undefined>>;

/**
 * Declares a type of actor. Its effects are not listed: they are the plain named actions of the machine's `setup`.
 *
 * @example
 * export const bulbActor = defineActor({ type: 'lamp.bulb', machine: bulb, version: 1 });
 * actors.send(bulbActor, 'hall', { type: 'SWITCHED_ON', … });
 * actors.get(bulbActor, 'hall')?.context.watts;
 * @public
 */
export function defineActor<M extends AnyStateMachine>(definition: ActorDefinition<M>): ActorDefinition<M> {
  return Object.freeze({ durability: 'sync', ...definition });
}

/** The effect types a machine may ask for: its named actions that are not XState's own (`assign`). */
export function effectTypes(machine: AnyStateMachine): string[] {
  return Object.entries(machine.implementations.actions)
    .filter(([, action]) => typeof action === 'function' && !('resolve' in action))
    .map(([type]) => type);
}

/** One event for one actor of the type that a route leads to: the key says which. */
export interface RouteTarget<M extends AnyStateMachine = AnyStateMachine> {
  readonly key: string;
  readonly event: EventOf<M>;
}

/**
 * A route as it is registered: topic to actor type, as data, so that `holdfast graph` draws it without running it.
 *
 * @public
 */
export interface Route<T = unknown> {
  readonly topic: Topic<T>;
  /** The type of the actors addressed, e.g. `lamp.bulb`. */
  readonly to: string;
  /** Pure. An empty list means that the message concerns no actor. */
  map(envelope: Envelope<T>): readonly { readonly key: string; readonly event: UncheckedEvent }[];
  /** Each host of a cluster takes the messages of all hosts, in one order. */
  readonly everyHost?: boolean;
  /** Only messages of the host that the actors are on. */
  readonly ownHost?: boolean;
  /** Its actors take the messages of all hosts and are each host's own: their alerts name the host. */
  readonly ownState?: boolean;
}

/** Binds a topic to a type of actor; the events are checked against its machine. */
export function routeOf<T, M extends AnyStateMachine>(
  topic: Topic<T>,
  actor: ActorDefinition<M>,
  map: (envelope: Envelope<T>) => readonly RouteTarget<M>[],
): Route<T> {
  return { topic, to: actor.type, map };
}
