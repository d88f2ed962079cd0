import type { Envelope } from './bus.ts';
import type { Topic } from './topic.ts';

/** One event for one actor: the key addresses the actor within its type. */
export interface RouteTarget {
  readonly key: string;
  readonly event: { readonly type: string; readonly [field: string]: unknown };
}

/** Topic to actor, as data: `holdfast graph` draws it without running it. */
export interface Route<T = unknown> {
  readonly topic: Topic<T>;
  /** The type of the actors addressed, e.g. `reconciler.leg`. */
  readonly to: string;
  /** Pure. An empty list means that the message concerns no actor. */
  readonly map: (envelope: Envelope<T>) => readonly RouteTarget[];
}

/**
 * Declares that messages of a topic become events of actors (`docs/architecture.md`, One flow).
 *
 * @param topic what is listened to
 * @param to the actor type addressed
 * @param map the events a message turns into; pure, and cheap, for it runs on the publisher's turn
 */
export function defineRoute<T>(topic: Topic<T>, to: string, map: Route<T>['map']): Route<T> {
  return Object.freeze({ topic, to, map });
}
