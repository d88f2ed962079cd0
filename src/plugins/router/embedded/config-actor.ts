import { z } from 'zod';
import type { Envelope } from '../../../bus/bus.ts';
import { defineTopic, type Topic } from '../../../bus/topic.ts';
import { routerChannels } from '../../../core/contracts/router.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { defineRoute, type Route } from '../../../core/kernel/actors/route.ts';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import { delayOf, type LogEvent, type LogRecord } from '../../../core/kernel/log/record.ts';
import type {
  ApplyParams,
  ConfigEvent,
  PublishParams,
  ReplyParams,
  VerifyParams,
} from '../../../machines/router/config-shapes.ts';
import { tellAddresses } from './address-sets.ts';
import { dhcpRewritten } from './dhcp.ts';
import type { RouterParts } from './http-api.ts';
import { CONFIG_ACTOR } from './pending-transaction.ts';

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

const OPS = { append: 'appends', commit: 'commits', revert: 'reverts' } as const;

/** A record of the config actor in an operator's words, for `holdfast log`. */
export function describeConfigRecord(record: LogRecord): string | undefined {
  if (record.event.type === 'effect.done') return record.event.gone ? 'nobody waits for the answer' : '';
  if (delayOf(record.event.type) === 'window') return windowOver(record);
  const event = known(record.event);
  if (!event) return undefined;
  switch (event.type) {
    case 'SET': {
      const { who, op, transID, changed = [] } = event;
      const what = op ? `${OPS[op]} ${transID}` : 'saves';
      const paths = op === 'commit' || op === 'revert' ? '' : `: ${listed(changed) || 'nothing changed'}`;
      return `${who} ${what}${paths}${refusalOf(record, event.request)}`;
    }
    case 'APPLY_CURRENT':
      return `${event.who} reapplies the current config${refusalOf(record, event.request)}`;
    case 'CONFIGURE':
      return undefined;
    case 'LOADED':
      return record.ignored ? '' : `store holds ${short(event.ncid)}`;
    case 'APPLIED':
      return `${short(event.ncid)} stands, reapplied: ${listed(event.reapplied) || 'nothing'}`;
    case 'APPLY_FAILED':
      return `apply failed: ${event.errors.join('; ')}`;
    case 'OVERTAKEN':
      return `store was changed by somebody else, holds ${short(event.ncid)}`;
    case 'effect.failed':
    case 'effect.lost':
      return undefined;
  }
}

const KNOWN: ReadonlySet<string> = new Set<ConfigEvent['type']>([
  'SET',
  'APPLY_CURRENT',
  'CONFIGURE',
  'LOADED',
  'APPLIED',
  'APPLY_FAILED',
  'OVERTAKEN',
  'effect.failed',
  'effect.lost',
]);

function known(event: LogEvent): ConfigEvent | undefined {
  return KNOWN.has(event.type) ? (event as unknown as ConfigEvent) : undefined;
}

/** The timer that ends an uncommitted transaction. It reverts at once, unless another apply is still running. */
function windowOver({ effects }: LogRecord): string {
  const apply = effects.find(({ type }) => type === 'router.apply')?.params as ApplyParams | undefined;
  return apply
    ? `window of ${apply.transID} ran out, reverts`
    : 'window ran out, reverts after the running apply';
}

/** Why the request was turned away at once, when it was. */
function refusalOf({ effects }: LogRecord, request: string): string {
  for (const { type, params } of effects) {
    if (type !== 'http.reply') continue;
    const { to, status, body } = params as unknown as ReplyParams;
    if (to === request && status !== 200) return ` (refused: ${body.errors.join('; ')})`;
  }
  return '';
}

function listed(items: readonly string[]): string {
  return items.length > 4 ? `${items.slice(0, 3).join(', ')} and ${items.length - 3} more` : items.join(', ');
}

function short(ncid: string): string {
  return `ncid ${ncid.slice(0, 8)}…`;
}

/** An apply of a real daemon takes up to 8 s and more; beyond this the machine reads the store to learn what stands. */
const APPLY_DEADLINE_MS = 300_000;

/** The effects that the machine `config-transaction` asks for. */
export function registerEffects(context: PluginContext, parts: () => RouterParts): void {
  context.effect<ApplyParams>('router.apply', (params, effect) => parts().router.apply(params, effect), {
    onRecovery: 'retry',
    deadlineMs: APPLY_DEADLINE_MS,
    adapter: 'config store, kernel',
  });

  context.effect<VerifyParams>('router.verify', (params) => parts().router.verify(params), {
    onRecovery: 'retry',
    adapter: 'config store',
  });

  // After the save, and surviving a crash in between: listeners may hear of one change twice, never of none.
  context.effect<PublishParams>(
    'router.publish',
    async ({ ncid, reapplied, rewritten, apc, transID, story }, { at, cause, correlation }) => {
      const { bus } = context.services;
      const meta = { correlation: story ?? correlation, cause };
      const change = { ncid, at, ...(transID !== undefined && { transID }) };
      for (const intf of reapplied) bus.publish(routerChannels.ifaceChangeApplied, { ...change, intf }, meta);
      bus.publish(routerChannels.changeApplied, change, meta);
      if (apc) bus.publish(routerChannels.apcChangeApplied, change, meta);
      if (rewritten) bus.publish(dhcpRewritten, { legs: [...rewritten], ncid }, meta);
      if (reapplied.length > 0) await tellAddresses(parts().router, context.services, meta);
      await parts().published();
    },
    { onRecovery: 'retry', adapter: 'bus, pub/sub' },
  );
}
