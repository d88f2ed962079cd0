/** From a notice to its receiver: the receiver's outbox, and the posts that the outbox asks for. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import { type SecretsStore, SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { LogEvent } from '../../core/kernel/log/record.ts';
import type { Notice, Queued } from '../../machines/alerts/notice.ts';
import { outboxActor } from './actors.ts';
import { formats } from './payloads.ts';
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
  runbook: z.string().exactOptional(),
});

/** A notice for one receiver. */
export const notified = defineTopic(
  'alerts.notified',
  z.object({ receiver: z.string(), item: z.object({ id: z.string(), at: z.number(), notice }) }),
  'A receiver is to be notified of an alert.',
);

/** Registers the outboxes, and the effects that fill and empty them. */
export function registerDelivery(context: PluginContext, receivers: Receivers): void {
  context.actor({
    ...outboxActor,
    input: (receiver) => ({ receiver, ...batchSettings(receivers[receiver]) }),
  });
  context.route(notified, outboxActor, ({ payload: { receiver, item } }) => [
    { key: receiver, event: { type: 'QUEUE', item } as const },
  ]);
  context.effect<{ to: readonly string[]; notice: Notice }>(
    'alerts.notify',
    ({ to, notice }, { id, at, cause, correlation }, { bus }) => {
      for (const receiver of to) {
        const item = { id: `${id}/${receiver}`, at, notice: { ...notice, labels: { ...notice.labels } } };
        bus.publish(notified, { receiver, item }, { correlation, cause });
      }
    },
    { onRecovery: 'retry' },
  );
  context.effect<{ receiver: string; items: readonly Queued[] }>(
    'alerts.post',
    ({ receiver, items }, { signal }, { clock, find }) => {
      const store = find(SecretsStoreToken);
      return deliver(receiver, receivers[receiver], items, { now: () => clock.now(), store, signal });
    },
    { onRecovery: 'retry', adapter: 'alerts.webhook' },
  );
}

/** At a start: gives existing outboxes the configured batch time. */
export function configureOutboxes(receivers: Receivers, { actors }: Pick<Services, 'actors'>): void {
  for (const [name, receiver] of Object.entries(receivers)) {
    const known = actors.get(outboxActor, name)?.context;
    const { batchMs = 0 } = batchSettings(receiver);
    if (known && known.batchMs !== batchMs) actors.send(outboxActor, name, { type: 'CONFIGURE', batchMs });
  }
}

/** How long an outbox collects notices for one post; the machine has a default of its own. */
function batchSettings(receiver: Receiver | undefined): { readonly batchMs?: number } {
  return receiver === undefined ? {} : { batchMs: Math.round(receiver.batchSeconds * 1_000) };
}

interface DeliveryOptions {
  readonly now: () => number;
  readonly store: SecretsStore | undefined;
  readonly signal: AbortSignal;
}

/** Posts notices to a receiver, and reports its answer as an event of its outbox. */
async function deliver(
  name: string,
  receiver: Receiver | undefined,
  items: readonly Queued[],
  { now, store, signal }: DeliveryOptions,
): Promise<LogEvent> {
  if (!receiver) return { type: 'REFUSED', at: now(), reason: 'it is no longer listed' };
  try {
    const target = await readTarget(name, receiver, process.env, store);
    const answer = await post(target, items, now(), signal);
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

const bounded = ({ status, body }: { readonly status: number; readonly body: string }) => ({
  status,
  body: body.slice(0, ANSWER_KEPT),
});

/**
 * Posts notices to a receiver, in its format.
 *
 * @param now epoch milliseconds
 */
export function post(
  { format, url, bearer }: Target,
  items: readonly Queued[],
  now: number,
  signal: AbortSignal,
): Promise<Posted> {
  return postOnce({ url, bearer, ...formats[format](items, idempotencyKey(items)) }, now, signal);
}

/** The same for the same notices, however often they are posted and by whichever process. */
function idempotencyKey(items: readonly Queued[]): string {
  const whole = items.map(({ id, at }) => `${id}@${at}`).join();
  return createHash('sha256').update(whole).digest('hex').slice(0, 32);
}
