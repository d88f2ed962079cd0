import { z } from 'zod';
import type { Envelope } from '../../bus/bus.ts';
import { defineRoute, type Route } from '../../bus/route.ts';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import { CONFIG_ACTOR } from '../../core/contracts/router-transaction.ts';
import { parseActorRef } from '../../core/kernel/ids.ts';

/** The type and key of the actor that decides about the box's config. */
export const { type: CONFIG_TYPE, key: CONFIG_ACTOR_KEY } = parseActorRef(CONFIG_ACTOR);

const origin = {
  /** Where the answer goes. */
  request: z.string(),
  /** For people: which client asked. */
  who: z.string(),
};

const setRequest = z.object({
  ...origin,
  op: z.enum(['append', 'commit', 'revert']).optional(),
  transID: z.string().optional(),
  ncid: z.string().optional(),
  ignoreNcid: z.literal(true).optional(),
  fingerprint: z.string().optional(),
  changed: z.array(z.string()).optional(),
});

/** A posted config as a projection; its body travels sealed, beside the message. */
export type SetRequested = z.infer<typeof setRequest>;

export const setRequested: Topic<SetRequested> = defineTopic(
  'router.set_requested',
  setRequest,
  'A whole config was posted, or a transaction is to end.',
);

export const applyRequested: Topic<{ request: string; who: string }> = defineTopic(
  'router.apply_requested',
  z.object(origin),
  'The current config is to be applied again.',
);

const version = z.object({ ncid: z.string(), fingerprint: z.string() });
const loaded = version.extend({
  origin: z.string(),
  shared: z.literal(true).optional(),
  transaction: z
    .object({ transID: z.string(), who: z.string(), previous: version, leftMs: z.number() })
    .optional(),
});

export const storeLoaded: Topic<z.infer<typeof loaded>> = defineTopic(
  'router.store_loaded',
  loaded,
  'The config store was read at start.',
);

const settings = z.object({ windowMs: z.number(), retryMs: z.number(), queueLimit: z.number() });

/** What an operator may set of the config actor; times are milliseconds. */
export type TransactionSettings = z.infer<typeof settings>;

export const settingsChanged: Topic<TransactionSettings> = defineTopic(
  'router.settings_changed',
  settings,
  'The configured times and limits of config transactions are other ones than at the last start.',
);

/** The story, where the request is not its beginning. */
function storyOf({ correlation, payload }: Envelope<{ request: string }>): { story?: string } {
  return correlation === payload.request ? {} : { story: correlation };
}

/** Which messages the config actor hears. */
export const configRoutes: readonly Route<never>[] = [
  defineRoute(setRequested, CONFIG_TYPE, (envelope) => [
    { key: CONFIG_ACTOR_KEY, event: { type: 'SET', ...storyOf(envelope), ...envelope.payload } },
  ]),
  defineRoute(applyRequested, CONFIG_TYPE, (envelope) => [
    { key: CONFIG_ACTOR_KEY, event: { type: 'APPLY_CURRENT', ...storyOf(envelope), ...envelope.payload } },
  ]),
  defineRoute(settingsChanged, CONFIG_TYPE, ({ payload }) => [
    { key: CONFIG_ACTOR_KEY, event: { type: 'CONFIGURE', ...payload } },
  ]),
  defineRoute(storeLoaded, CONFIG_TYPE, ({ payload }) => [
    { key: CONFIG_ACTOR_KEY, event: { type: 'LOADED', ...payload } },
  ]),
] as unknown as readonly Route<never>[];
