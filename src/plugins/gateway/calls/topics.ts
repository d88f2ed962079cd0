import { z } from 'zod';
import { defineTopic, type Topic } from '../../../bus/topic.ts';
import { defineRoute, type Route } from '../../../core/kernel/actors/route.ts';
import type { DoorEvent } from '../../../machines/gateway/admission.ts';
import type { AccessCall, DoorRule, MisplacedKey } from '../../../machines/gateway/key.ts';
import { KEY_ACTOR } from '../keys/directory.ts';
import { IN_AUTHORIZATION } from '../keys/misplaced-key.ts';

/** The one actor for callers without a key. */
export const DOOR_ACTOR = 'gateway.admission';
const DOOR_KEY = 'all';

export interface CallMade {
  /** Id of the key. */
  readonly key: string;
  readonly call: AccessCall;
}

const misplaced = z.object({ key: z.enum(['virtual_key', 'master_key']), where: z.string() });

const call = z.object({
  type: z.literal('CALL'),
  at: z.number(),
  presented: z.string(),
  routes: z.array(z.string()),
  table: z.number(),
  method: z.string(),
  tool: z.string().optional(),
  toolUnlisted: z.literal(true).optional(),
  authorization: z.enum(['bearer', 'virtual_key', 'master_key']).optional(),
  misplaced: misplaced.optional(),
  relay: z.literal(true).optional(),
  writes: z.literal(true).optional(),
  cost: z.number().optional(),
  bytes: z.number().optional(),
  open: z.number().optional(),
  most: z.number().optional(),
  count: z.int().min(2).optional(),
});

export const callMade: Topic<CallMade> = defineTopic(
  'gateway.call_made',
  z.object({ key: z.string(), call }) as unknown as z.ZodType<CallMade>,
  'Somebody with a known key calls a server behind the gateway.',
);

export interface TurnedAway {
  readonly at: number;
  readonly rule: DoorRule;
  readonly source: string;
  readonly path: string;
  /** A key that stood where it may leak. */
  readonly misplaced?: MisplacedKey;
  /** On a path of the REST API. */
  readonly rest?: true;
  /** Of the requests that this is about; one when absent. */
  readonly count?: number;
}

export const turnedAway: Topic<TurnedAway> = defineTopic(
  'gateway.call_rejected',
  z.object({
    at: z.number(),
    rule: z.enum([
      'no_key',
      'malformed_key',
      'unknown_key',
      'key_only_in_authorization',
      'master_key_presented',
      'master_key_wanted',
      'virtual_key_wanted',
      'key_in_query',
      'not_read',
      'let_in',
    ]),
    source: z.string(),
    path: z.string(),
    misplaced: misplaced.optional(),
    rest: z.literal(true).optional(),
    count: z.int().min(1).optional(),
  }) as unknown as z.ZodType<TurnedAway>,
  'Somebody without a known key called the gateway.',
);

export const callRoutes: readonly Route<never>[] = [
  defineRoute(callMade, KEY_ACTOR, ({ payload: { key, call } }) => [{ key, event: call }]),
  defineRoute(turnedAway, DOOR_ACTOR, ({ payload }) => [{ key: DOOR_KEY, event: doorEvent(payload) }]),
] as unknown as readonly Route<never>[];

/**
 * A key in Authorization comes to the door's machine without a place where that alone is what is wrong: it has an alert of
 * its own for that. With its place comes one of a call that was only looked at, and one of the REST API, where keys belong
 * in that header and this is another one beside it.
 */
function doorEvent({ misplaced, ...facts }: TurnedAway): DoorEvent {
  if (!misplaced) return { type: 'TURNED_AWAY', ...facts };
  const { key, where } = misplaced;
  const isOnlyThere = where === IN_AUTHORIZATION && facts.rule !== 'not_read' && !facts.rest;
  return { type: 'TURNED_AWAY', ...facts, misplaced: key, ...(!isOnlyThere && { where }) };
}
