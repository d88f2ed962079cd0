import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import type { LogRecord } from '../../../core/kernel/log/record.ts';
import { virtualKey } from '../../../machines/gateway/key.ts';
import { describeGatewayRecord } from '../words.ts';

/** A virtual key. The actor's key is the id of the first value it was presented by. */
export const keyActor = defineActor({
  type: 'gateway.key',
  machine: virtualKey,
  version: 1,
  durability: durabilityOf,
  describe: describeGatewayRecord,
});

/**
 * How long a request waits for a decision, milliseconds: it is made at once, and waits for its record only. Beyond that
 * the answer is HF_HTTP_TIMEOUT, and what was decided is in the log.
 */
export const DECISION_MS = 10_000;

/** Admitted calls are batched: a crash may cost their last moments. Whatever changes or refuses is not (C2). */
function durabilityOf({ event, effects }: LogRecord): 'sync' | 'batched' {
  if (event.type === 'CALL_ENDED') return 'batched';
  const forwarded = effects.some(({ type }) => type === 'gateway.forward');
  const onlyForwarded = forwarded && effects.length === 1;
  return event.type === 'CALL' && onlyForwarded && event.writes !== true ? 'batched' : 'sync';
}

const limits = {
  owner: z.string().exactOptional(),
  tools: z.array(z.string()).readonly().exactOptional(),
  rpmLimit: z.number().exactOptional(),
  maxBudget: z.number().exactOptional(),
  maxParallel: z.number().exactOptional(),
  maxStreams: z.number().exactOptional(),
  expiresAt: z.number().exactOptional(),
  restriction: z.string().exactOptional(),
};
const terms = z.object({ alias: z.string(), servers: z.array(z.string()).readonly(), ...limits });
const at = z.number();
const presented = z.string();

const change = z.discriminatedUnion('type', [
  z.object({ type: z.literal('KEY_CREATED'), at, terms, presented }),
  z.object({
    type: z.literal('KEY_UPDATED'),
    at,
    set: z.object({
      alias: z.string().exactOptional(),
      servers: z.array(z.string()).readonly().exactOptional(),
      ...limits,
    }),
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
      .readonly()
      .exactOptional(),
  }),
  z.object({ type: z.literal('KEY_ROTATED'), at, presented, overlapMs: z.number() }),
  z.object({ type: z.literal('KEY_REVOKED'), at }),
  z.object({ type: z.literal('KEY_READ'), at, presented }),
]);

/** A reading or a change of a key, as its actor gets it. */
export type KeyChange = z.output<typeof change>;

export const keyChangeRequested = defineTopic(
  'gateway.key_change_requested',
  z.object({ key: z.string(), change }),
  'A virtual key is to be made, changed, rotated, revoked, or read by its holder.',
);

/** Declares the actor of keys, and what changes them. */
export function registerKeys(context: PluginContext<unknown>): void {
  context.actor(keyActor);
  context.route(keyChangeRequested, keyActor, ({ payload: { key, change } }) => [{ key, event: change }]);
}
