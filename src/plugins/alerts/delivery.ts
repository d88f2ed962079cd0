/** Delivers notices: a receiver's outbox, and the posts that the outbox requests. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import { type AlertLinkMaker, alertLinks } from '../../core/contracts/alerts.ts';
import { type SecretsStore, SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { parseActorRef } from '../../core/kernel/ids.ts';
import type { LogEvent } from '../../core/kernel/log/record.ts';
import type { Notification, Queued } from '../../machines/alerts/notice.ts';
import { alertActor, outboxActor } from './actors.ts';
import { Notices } from './notification.ts';
import type { AlertsOptions } from './options.ts';
import { formats, REPEAT_MS } from './payloads.ts';
import { type Receiver, readTarget, type Target } from './receivers.ts';
import { type Posted, postOnce } from './webhook.ts';

type Receivers = Readonly<Record<string, Receiver>>;

/** Characters of an answer that are kept. */
const ANSWER_KEPT = 300;

const notice = z.object({
  state: z.enum(['firing', 'reminder', 'resolved', 'event']),
  name: z.string(),
  severity: z.enum(['info', 'warning', 'critical']),
  title: z.string(),
  text: z.string(),
  labels: z.record(z.string(), z.string()),
  since: z.number(),
  value: z.number().exactOptional(),
  threshold: z.string().exactOptional(),
  window: z.string().exactOptional(),
  places: z.array(z.string()).exactOptional(),
  firstStep: z.string().exactOptional(),
  runbook: z.string().exactOptional(),
  alert: z.string().exactOptional(),
  host: z.string().exactOptional(),
  instance: z.string().exactOptional(),
  cause: z.string().exactOptional(),
});

/** A notice for one receiver. */
export const notified = defineTopic(
  'alerts.notified',
  z.object({ receiver: z.string(), item: z.object({ id: z.string(), at: z.number(), notice }) }),
  'A receiver is to be notified of an alert.',
);

/** A receiver has accepted notices, each of one alert. */
const noticesTaken = defineTopic(
  'alerts.taken',
  z.object({ receiver: z.string(), at: z.number(), alerts: z.array(z.string()) }),
  'A receiver has taken notices of alerts.',
);

/** Registers the outboxes, and the effects that fill and empty them. */
export function registerDelivery(
  context: PluginContext,
  { receivers, runbooks }: Pick<AlertsOptions, 'receivers' | 'runbooks'>,
): void {
  const notices = new Notices(runbooks);
  context.actor({
    ...outboxActor,
    input(receiver) {
      const listed = receivers[receiver];
      return { receiver, ...(listed && outboxSettings(listed)) };
    },
  });
  context.route(notified, outboxActor, ({ payload: { receiver, item } }) => [
    { key: receiver, event: { type: 'QUEUE', item } as const },
  ]);
  context.effect<Notification>(
    'alerts.notify',
    async ({ to, notice, record }, { id, at, actor, cause, correlation }, services) => {
      if (to.length === 0) return;
      const { places, ...whole } = await notices.complete(notice, parseActorRef(actor).key, record, services);
      for (const receiver of to) {
        const copied = { ...whole, labels: { ...whole.labels }, ...(places && { places: [...places] }) };
        const item = { id: `${id}/${receiver}`, at, notice: copied };
        services.bus.publish(notified, { receiver, item }, { correlation, cause });
      }
    },
    { onRecovery: 'retry' },
  );
  context.route(noticesTaken, alertActor, ({ payload: { receiver, at, alerts } }) =>
    alerts.map((key) => ({ key, event: { type: 'TAKEN', at, receiver } as const })),
  );
  context.effect<{ receiver: string; at: number; alerts: readonly string[] }>(
    'alerts.taken',
    ({ receiver, at, alerts }, { cause, correlation }, { actors, bus }) => {
      const existing = alerts.filter((key) => actors.get(alertActor, key) !== undefined);
      if (existing.length > 0)
        bus.publish(noticesTaken, { receiver, at, alerts: existing }, { correlation, cause });
    },
    { onRecovery: 'retry' },
  );
  context.effect<{ receiver: string }>(
    'alerts.repost',
    async ({ receiver }, { signal }, services): Promise<LogEvent> => {
      const { actors, clock, find } = services;
      const at = clock.now();
      const items = await Promise.all(
        actors.list(alertActor).flatMap(({ key, value, context: { content, informed, since, record } }) => {
          if (typeof value !== 'object' || !content || !informed.includes(receiver)) return [];
          const notice = notices.complete({ ...content, state: 'firing', since }, key, record, services);
          return [notice.then((each) => ({ id: `again/${key}`, at, notice: each }))];
        }),
      );
      if (items.length === 0) return { type: 'REPOSTED', at, count: 0 };
      const store = find(SecretsStoreToken);
      const outcome = await deliver(receiver, receivers[receiver], items, {
        now: () => clock.now(),
        store,
        signal,
        links: linksOf(services),
      });
      return outcome.type === 'POSTED' ? { ...outcome, type: 'REPOSTED', count: items.length } : outcome;
    },
    { onRecovery: 'retry', adapter: 'alerts.webhook' },
  );
  context.effect<{ receiver: string; items: readonly Queued[] }>(
    'alerts.post',
    ({ receiver, items }, { signal }, services) => {
      const { clock, find } = services;
      const store = find(SecretsStoreToken);
      const links = linksOf(services);
      return deliver(receiver, receivers[receiver], items, { now: () => clock.now(), store, signal, links });
    },
    { onRecovery: 'retry', adapter: 'alerts.webhook' },
  );
}

/** At a start: gives existing outboxes the configured batch time and repetition. */
export function configureOutboxes(receivers: Receivers, { actors }: Pick<Services, 'actors'>): void {
  for (const [name, receiver] of Object.entries(receivers)) {
    const context = actors.get(outboxActor, name)?.context;
    const settings = outboxSettings(receiver);
    if (!context || (context.batchMs === settings.batchMs && (context.repeatMs ?? 0) === settings.repeatMs))
      continue;
    actors.send(outboxActor, name, { type: 'CONFIGURE', ...settings });
  }
}

/** How long an outbox collects notices for one post, and how often its receiver must be told again. */
function outboxSettings({ batchSeconds, format }: Receiver) {
  return {
    batchMs: Math.round(batchSeconds * 1_000),
    repeatMs: format === 'alertmanager-api' ? REPEAT_MS : 0,
  };
}

interface DeliveryOptions {
  readonly now: () => number;
  readonly store: SecretsStore | undefined;
  readonly signal: AbortSignal;
  readonly links: readonly AlertLinkMaker[];
}

const linksOf = ({ contributions }: Services): readonly AlertLinkMaker[] =>
  contributions(alertLinks).map(({ value }) => value);

/** The notices as they are sent: with links that the records of them do not have. */
function withLinks(items: readonly Queued[], makers: readonly AlertLinkMaker[]): readonly Queued[] {
  return items.map((item) => {
    const [link] = makers.flatMap((maker) => maker.linkOf(item.notice) ?? []);
    return link === undefined ? item : { ...item, notice: { ...item.notice, link } };
  });
}

/** Posts notices to a receiver, and reports its answer as an event of its outbox. */
async function deliver(
  name: string,
  receiver: Receiver | undefined,
  items: readonly Queued[],
  { now, store, signal, links }: DeliveryOptions,
): Promise<LogEvent> {
  if (!receiver) return { type: 'REFUSED', at: now(), reason: 'it is no longer listed' };
  try {
    const target = await readTarget(name, receiver, process.env, store);
    const answer = await post(target, withLinks(items, links), now(), signal);
    if (answer.kind === 'taken') return { type: 'POSTED', at: now(), answer: bounded(answer) };
    const { reason, retryAfterMs, status, body = '' } = answer;
    return {
      type: 'REFUSED',
      at: now(),
      reason,
      ...(status !== undefined && { answer: bounded({ status, body }) }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
  } catch (error) {
    if (!isCoded(error)) throw error;
    return { type: 'REFUSED', at: now(), reason: error.what };
  }
}

/** A receiver may repeat what it got, links included. */
const bounded = ({ status, body }: { readonly status: number; readonly body: string }) => ({
  status,
  body: maskText(body).slice(0, ANSWER_KEPT),
});

/**
 * Posts notices to a receiver, in its format.
 *
 * @param now epoch milliseconds
 */
export function post(
  { format, url, bearer, insecure }: Target,
  items: readonly Queued[],
  now: number,
  signal: AbortSignal,
): Promise<Posted> {
  const request = formats[format](items, idempotencyKey(items), now);
  return postOnce({ url, bearer, insecure, ...request }, now, signal);
}

/** The same key for the same notices, however often and by whichever process they are posted. */
function idempotencyKey(items: readonly Queued[]): string {
  const whole = items.map(({ id, at }) => `${id}@${at}`).join();
  return createHash('sha256').update(whole).digest('hex').slice(0, 32);
}
