/**
 * The actor `router.config/default`, which decides about the config: what it is sent, how its effects are carried out, and
 * its records in words. The decisions are those of the machine `machines/router/config.ts`.
 */
import { z } from 'zod';
import type { Envelope } from '../../../bus/bus.ts';
import { defineTopic } from '../../../bus/topic.ts';
import { routerChannels } from '../../../core/contracts/router.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { DEFAULT_WORDS, defineActor, HIDDEN, type RecordOf } from '../../../core/kernel/actors/definition.ts';
import { actorRef } from '../../../core/kernel/ids.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { delayOf, type LogRecord } from '../../../core/kernel/log/record.ts';
import { routerConfig } from '../../../machines/router/config.ts';
import type { ApplyParams, PublishParams, VerifyParams } from '../../../machines/router/config-shapes.ts';
import { publishAddresses } from './address-sets.ts';
import { dhcpRewritten } from './dhcp.ts';
import type { RouterServices } from './start.ts';

export const configActor = defineActor({
  type: 'router.config',
  machine: routerConfig,
  version: 1,
  describe: describeConfigRecord,
});
/** There is one config, and so one such actor. */
export const CONFIG_KEY = 'default';
export const CONFIG_ACTOR = actorRef(configActor.type, CONFIG_KEY);

const origin = {
  /** Where the answer goes. */
  request: z.string(),
  /** The client, for people. */
  who: z.string(),
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
    fingerprint: z.string().exactOptional(),
    changed: z.array(z.string()).exactOptional(),
  }),
  'A whole config was posted, or a transaction is to end.',
);

export const applyRequested = defineTopic(
  'router.apply_requested',
  z.object(origin),
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

/** An apply of a real daemon takes 8 s and more; beyond this the store is asked what became of it. */
const APPLY_DEADLINE_MS = 300_000;

/** Registers the actor, its routes and its effects. */
export function registerConfigActor(
  context: PluginContext<RouterServices>,
  settings: { readonly windowMs: number; readonly retryMs: number; readonly queueLimit: number },
): void {
  context.actor({ ...configActor, input: () => settings });
  context.route(setRequested, configActor, (envelope) => [
    { key: CONFIG_KEY, event: { type: 'SET', ...storyOf(envelope), ...envelope.payload } },
  ]);
  context.route(applyRequested, configActor, (envelope) => [
    { key: CONFIG_KEY, event: { type: 'APPLY_CURRENT', ...storyOf(envelope), ...envelope.payload } },
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
      const { ncid, reapplied, rewritten, apc, transID, story } = params;
      const { bus } = services;
      const meta = { correlation: story ?? correlation, cause };
      const change = { ncid, at, ...(transID !== undefined && { transID }) };
      for (const intf of reapplied) bus.publish(routerChannels.ifaceChangeApplied, { ...change, intf }, meta);
      bus.publish(routerChannels.changeApplied, change, meta);
      if (apc) bus.publish(routerChannels.apcChangeApplied, change, meta);
      if (rewritten) bus.publish(dhcpRewritten, { legs: [...rewritten], ncid }, meta);
      if (reapplied.length > 0) await publishAddresses(router, services, meta);
      await redis?.published();
    },
    { onRecovery: 'retry', adapter: 'bus, pub/sub' },
  );
}

/** The correlation id, where the request is not the beginning of its story. */
function storyOf({ correlation, payload }: Envelope<{ request: string }>): { story?: string } {
  return correlation === payload.request ? {} : { story: correlation };
}

const OPS = { append: 'appends', commit: 'commits', revert: 'reverts' } as const;

/** A record in an operator's words, for `holdfast log`. */
export function describeConfigRecord(record: RecordOf<typeof routerConfig>): string | undefined {
  const { event } = record;
  if (delayOf(event.type) === 'window') return describeWindow(record);
  switch (event.type) {
    case 'SET': {
      const { who, op, transID, changed = [] } = event;
      const what = op ? `${OPS[op]} ${transID}` : 'saves';
      const paths = op === 'commit' || op === 'revert' ? '' : `: ${listed(changed) || 'nothing changed'}`;
      return `${who} ${what}${paths}${describeRefusal(record, event.request)}`;
    }
    case 'APPLY_CURRENT':
      return `${event.who} reapplies the current config${describeRefusal(record, event.request)}`;
    case 'LOADED':
      return record.ignored ? HIDDEN : `store holds ${short(event.ncid)}`;
    case 'APPLIED':
      return `${short(event.ncid)} stands, reapplied: ${listed(event.reapplied) || 'nothing'}`;
    case 'APPLY_FAILED':
      return `apply failed: ${event.errors.join('; ')}`;
    case 'OVERTAKEN':
      return `store was changed by somebody else, holds ${short(event.ncid)}`;
    default:
      return describeEffectDone(record);
  }
}

function describeEffectDone({ event }: LogRecord): string | undefined {
  if (event.type !== 'effect.done') return DEFAULT_WORDS;
  return event.gone ? 'nobody waits for the answer' : HIDDEN;
}

/** The timer that ends an uncommitted transaction. It reverts at once, unless another apply is still running. */
function describeWindow({ effects }: LogRecord): string {
  const apply = effects.find(({ type }) => type === 'router.apply')?.params;
  return isObject(apply)
    ? `window of ${apply.transID} ran out, reverts`
    : 'window ran out, reverts after the running apply';
}

/** Why the request was refused at once, when it was. */
function describeRefusal({ effects }: LogRecord, request: string): string {
  for (const { type, params } of effects) {
    if (type !== 'http.reply' || !isObject(params) || params.to !== request || params.status === 200)
      continue;
    const errors = isObject(params.body) ? params.body.errors : undefined;
    if (Array.isArray(errors)) return ` (refused: ${errors.join('; ')})`;
  }
  return '';
}

function listed(items: readonly string[]): string {
  return items.length > 4 ? `${items.slice(0, 3).join(', ')} and ${items.length - 3} more` : items.join(', ');
}

function short(ncid: string): string {
  return `ncid ${ncid.slice(0, 8)}…`;
}
