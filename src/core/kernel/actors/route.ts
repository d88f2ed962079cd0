import type { AnyStateMachine } from 'xstate';
import type { Envelope } from '../../../bus/bus.ts';
import type { Topic } from '../../../bus/topic.ts';
import type { ActorDefinition, EventOf } from './definition.ts';
import type { UncheckedEvent } from './system.ts';

/** One event for one actor of the type that a route leads to: the key says which. */
export interface RouteTarget<M extends AnyStateMachine = AnyStateMachine> {
  readonly key: string;
  readonly event: EventOf<M>;
}

/** A route as it is registered: topic to actor type, as data, so that `holdfast graph` draws it without running it. */
export interface Route<T = unknown> {
  readonly topic: Topic<T>;
  /** The type of the actors addressed, e.g. `lamp.bulb`. */
  readonly to: string;
  /** Pure. An empty list means that the message concerns no actor. */
  map(envelope: Envelope<T>): readonly { readonly key: string; readonly event: UncheckedEvent }[];
}

/** Binds a topic to a type of actor; the events are checked against its machine. */
export function routeOf<T, M extends AnyStateMachine>(
  topic: Topic<T>,
  actor: ActorDefinition<M>,
  map: (envelope: Envelope<T>) => readonly RouteTarget<M>[],
): Route<T> {
  return { topic, to: actor.type, map };
}
