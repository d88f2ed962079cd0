import {
  BATCH,
  KEPT_MS,
  type OutboxArgs,
  type OutboxContext,
  QUEUE_KEPT,
  RECENT_KEPT,
  TELL_AFTER,
} from './outbox-shapes.ts';
import type { Queued } from './shapes.ts';

/** What is posted together. */
export const batchOf = (queue: readonly Queued[]): readonly Queued[] => queue.slice(0, BATCH);

/** Room is made at the far end, never by turning the newest away; what is being posted stays. */
export function enqueue({ context, event }: OutboxArgs): Partial<OutboxContext> {
  if (event.type !== 'QUEUE' || typeof event.item?.id !== 'string') return {};
  const { queue, sending, recent, lost } = context;
  const full = queue.length >= QUEUE_KEPT;
  const kept = full ? [...queue.slice(0, sending), ...queue.slice(sending + 1)] : queue;
  return {
    queue: [...kept, event.item],
    recent: [...recent, event.item.id].slice(-RECENT_KEPT),
    lost: full ? lost + 1 : lost,
  };
}

export function posted({ context, event }: OutboxArgs): Partial<OutboxContext> {
  return {
    queue: context.queue.slice(context.sending),
    sent: context.sent + context.sending,
    sending: 0,
    failures: 0,
    failingSince: undefined,
    reason: undefined,
    askedMs: undefined,
    ...(event.type === 'POSTED' && { sentAt: event.at, answer: event.answer }),
  };
}

export function refused({ context, event }: OutboxArgs): Partial<OutboxContext> {
  const known = event.type === 'REFUSED';
  return {
    sending: 0,
    failures: context.failures + 1,
    failingSince: context.failingSince ?? (known ? event.at : undefined),
    reason: known ? event.reason : 'it does not answer in time',
    askedMs: known ? event.retryAfterMs : undefined,
    answer: known ? event.answer : undefined,
  };
}

/** What is older than a day is given up, and counted. */
export function giveUp({ context, event }: OutboxArgs): Partial<OutboxContext> {
  if (event.type !== 'REFUSED') return {};
  const queue = context.queue.filter(({ at }) => event.at - at < KEPT_MS);
  return { queue, lost: context.lost + context.queue.length - queue.length };
}

/** 5 s, doubled each time up to five minutes, or what the receiver asked for. */
export function backoffOf({ failures, askedMs }: OutboxContext): number {
  const own = Math.min(5_000 * 2 ** Math.max(0, failures - 1), 300_000);
  return Math.min(Math.max(own, askedMs ?? 0), 3_600_000);
}

/** Whether an outage has been told, or is too young. */
export const isTold = ({ failures }: OutboxContext): boolean => failures !== TELL_AFTER;
