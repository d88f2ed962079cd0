/**
 * The actor `router.config/default`, which decides about the config: what it is sent, and how its effects are carried out.
 * The decisions are those of the machine `machines/router/config.ts`.
 */
import { z } from 'zod';
import type { Envelope } from '../../../bus/bus.ts';
import { defineTopic } from '../../../bus/topic.ts';
import { routerChannels } from '../../../core/contracts/router.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import { routerConfig } from '../../../machines/router/config.ts';
import type { ApplyParams, PublishParams, VerifyParams } from '../../../machines/router/config-shapes.ts';
import { describeConfigRecord } from '../words.ts';
import { publishAddresses } from './address-sets.ts';
import { dhcpRewritten } from './dhcp.ts';
import type { RouterAccess } from './embedded-router.ts';
import { CONFIG_ACTOR } from './pending-transaction.ts';
import type { RedisBackend } from './store/redis-backend.ts';

export const configActor = defineActor({
  type: parseActorRef(CONFIG_ACTOR).type,
  machine: routerConfig,
  version: 1,
  describe: describeConfigRecord,
});
/** There is one config, and so one such actor. */
export const CONFIG_KEY = parseActorRef(CONFIG_ACTOR).key;

const origin = {
  /** Where the answer goes. */
  request: z.string(),
  /** The client, for people. */
  who: z.string(),
  /** Of a writer that has to hold a lease. */
  fence: z.object({ singleton: z.string(), number: z.int() }).exactOptional(),
};

/** A posted config as a projection; its body travels sealed, beside the message. */
export const setRequested = defineTopic(
  'router.set_requested',
  z.object({
    ...origin,
    op: z.enum(['append', 'commit', 'revert']).exactOptional(),
    transID: z.string().exactOptional(),
    ncid: z.string().exactOptional(),
    ignoreNcid: z.literal(true).exactOptional(),
    current: z.string().exactOptional(),
    fingerprint: z.string().exactOptional(),
    changed: z.array(z.string()).exactOptional(),
  }),
  'A whole config was posted, or a transaction is to end.',
);

export const applyRequested = defineTopic(
  'router.apply_requested',
  z.object({
    ...origin,
    /** How many callers one apply answers; absent: 1. */
    callers: z.int().min(2).exactOptional(),
  }),
  'The current config is to be applied again.',
);

const version = z.object({ ncid: z.string(), fingerprint: z.string() });

export const storeLoaded = defineTopic(
  'router.store_loaded',
  version.extend({
    origin: z.string(),
    shared: z.literal(true).exactOptional(),
    transaction: z
      .object({ transID: z.string(), who: z.string(), previous: version, leftMs: z.number() })
      .exactOptional(),
  }),
  'The config store was read at start.',
);

/** Times are milliseconds. */
export const settingsChanged = defineTopic(
  'router.settings_changed',
  z.object({ windowMs: z.number(), retryMs: z.number(), queueLimit: z.number() }),
  'The configured times and limits of config transactions differ from those at the last start.',
);

/** An apply of a real daemon takes 8 s and more; after this time the store is read to learn the outcome. */
const APPLY_DEADLINE_MS = 300_000;

/** Registers the actor, its routes and its effects. */
export function registerConfigActor(
  context: PluginContext<RouterAccess & { readonly redis: RedisBackend | undefined }>,
  settings: { readonly windowMs: number; readonly retryMs: number; readonly queueLimit: number },
): void {
  context.actor({ ...configActor, input: () => settings });
  context.route(setRequested, configActor, (envelope) => [
    { key: CONFIG_KEY, event: { type: 'SET', ...correlationOf(envelope), ...envelope.payload } },
  ]);
  context.route(applyRequested, configActor, (envelope) => [
    { key: CONFIG_KEY, event: { type: 'APPLY_CURRENT', ...correlationOf(envelope), ...envelope.payload } },
  ]);
  context.route(settingsChanged, configActor, ({ payload }) => [
    { key: CONFIG_KEY, event: { type: 'CONFIGURE', ...payload } },
  ]);
  context.route(storeLoaded, configActor, ({ payload }) => [
    { key: CONFIG_KEY, event: { type: 'LOADED', ...payload } },
  ]);

  context.effect<ApplyParams>('router.apply', (params, effect, { router }) => router.apply(params, effect), {
    onRecovery: 'retry',
    deadlineMs: APPLY_DEADLINE_MS,
    adapter: 'config store, kernel',
  });
  context.effect<VerifyParams>('router.verify', (params, _effect, { router }) => router.verify(params), {
    onRecovery: 'retry',
    adapter: 'config store',
  });
  // After the save, and surviving a crash in between: subscribers may get one change twice, and never miss one.
  context.effect<PublishParams>(
    'router.publish',
    async (params, { at, cause, correlation }, { router, redis, services }) => {
      const { ncid, reapplied, rewritten, apc, apcOnly, transID } = params;
      const { bus } = services;
      const meta = { correlation: params.correlation ?? correlation, cause };
      const change = { ncid, at, ...(transID !== undefined && { transID }) };
      for (const intf of reapplied) bus.publish(routerChannels.ifaceChangeApplied, { ...change, intf }, meta);
      if (!apcOnly) bus.publish(routerChannels.changeApplied, change, meta);
      if (apc) bus.publish(routerChannels.apcChangeApplied, change, meta);
      if (rewritten) bus.publish(dhcpRewritten, { legs: [...rewritten], ncid }, meta);
      if (reapplied.length > 0) await publishAddresses(router, services, meta);
      await redis?.published();
    },
    { onRecovery: 'retry', adapter: 'bus, pub/sub' },
  );
}

/** The correlation id of a request, where it is another than the request's own id. */
function correlationOf({ correlation, payload }: Envelope<{ request: string }>): { correlation?: string } {
  return correlation === payload.request ? {} : { correlation };
}
