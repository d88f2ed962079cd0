import { z } from 'zod';
import { defineTopic, type Topic } from '../../../bus/topic.ts';
import { defineRoute, type Route } from '../../../core/kernel/actors/route.ts';
import type { AccessEvent } from '../../../machines/gateway/key.ts';
import { KEY_ACTOR } from './directory.ts';

/** What somebody wants to know of a key or change about it. */
export type KeyChange = Exclude<AccessEvent, { type: 'CALL' | 'CALL_ENDED' }>;

interface KeyChangeRequested {
  /** Id of the key. */
  readonly key: string;
  readonly change: KeyChange;
}

const limits = {
  owner: z.string().optional(),
  tools: z.array(z.string()).optional(),
  rpmLimit: z.number().optional(),
  maxBudget: z.number().optional(),
  maxParallel: z.number().optional(),
  maxStreams: z.number().optional(),
  expiresAt: z.number().optional(),
  restriction: z.string().optional(),
};
const terms = z.object({ alias: z.string(), servers: z.array(z.string()), ...limits });
const at = z.number();
const presented = z.string();

const change = z.discriminatedUnion('type', [
  z.object({ type: z.literal('KEY_CREATED'), at, terms, presented }),
  z.object({
    type: z.literal('KEY_UPDATED'),
    at,
    set: terms.partial(),
    clear: z
      .array(
        z.enum([
          'owner',
          'tools',
          'rpmLimit',
          'maxBudget',
          'maxParallel',
          'maxStreams',
          'expiresAt',
          'restriction',
        ]),
      )
      .optional(),
  }),
  z.object({ type: z.literal('KEY_ROTATED'), at, presented, overlapMs: z.number() }),
  z.object({ type: z.literal('KEY_REVOKED'), at }),
  z.object({ type: z.literal('KEY_READ'), at, presented }),
]);

export const keyChangeRequested: Topic<KeyChangeRequested> = defineTopic(
  'gateway.key_change_requested',
  z.object({ key: z.string(), change }) as unknown as z.ZodType<KeyChangeRequested>,
  'A virtual key is to be made, changed, rotated, revoked, or read by its holder.',
);

export const keyRoute = defineRoute(keyChangeRequested, KEY_ACTOR, ({ payload: { key, change } }) => [
  { key, event: change },
]) as unknown as Route<never>;
