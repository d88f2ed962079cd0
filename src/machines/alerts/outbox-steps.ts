import type { Alert } from '../effect.ts';
import type { Queued } from './alert-shapes.ts';
import {
  BATCH,
  KEPT_MS,
  type OutboxArgs,
  type OutboxContext,
  QUEUE_KEPT,
  RECEIVER_AWAY,
  RECENT_KEPT,
  TELL_AFTER,
} from './outbox-shapes.ts';

/** What is posted together: the post that failed as it was, so that its receiver knows it again, else what waits. */
export function take({ context: { queue, sending } }: OutboxArgs): Partial<OutboxContext> {
  return { sending: sending > 0 ? sending : Math.min(queue.length, BATCH) };
}

/** Room is made at the far end, never by turning the newest away; what is being posted stays. */
export function enqueue({ context, event }: OutboxArgs): Partial<OutboxContext> {
  if (event.type !== 'QUEUE' || typeof event.item?.id !== 'string') return {};
  const { sending, recent, lost } = context;
  const { item } = event;
  // One reminder of a condition is enough.
  const queue = context.queue.filter((each, index) => index < sending || !isOvertaken(each, item));
  const full = queue.length >= QUEUE_KEPT;
  const kept = full ? [...queue.slice(0, sending), ...queue.slice(sending + 1)] : queue;
  return {
    queue: [...kept, item],
    recent: [...recent, item.id].slice(-RECENT_KEPT),
    lost: full ? lost + 1 : lost,
  };
}

const isOvertaken = ({ notice: old }: Queued, { notice }: Queued): boolean =>
  old.state === 'reminder' &&
  notice.state === 'reminder' &&
  old.name === notice.name &&
  JSON.stringify(old.labels) === JSON.stringify(notice.labels);

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
  const gone = context.queue.length - queue.length;
  return gone === 0 ? {} : { queue, sending: 0, lost: context.lost + gone };
}

/** 5 s, doubled each time up to five minutes, or what the receiver asked for. */
export function backoffOf({ failures, askedMs }: OutboxContext): number {
  const own = Math.min(5_000 * 2 ** Math.max(0, failures - 1), 300_000);
  return Math.min(Math.max(own, askedMs ?? 0), 3_600_000);
}

/** Whether this failure is the one at which others are told. */
export const isToTell = ({ failures }: OutboxContext): boolean => failures === TELL_AFTER;
/** Whether others know of the outage. */
export const isTold = ({ failures }: OutboxContext): boolean => failures >= TELL_AFTER;

/** That a receiver takes nothing, for the other receivers; and that it does again. */
export function away({ context }: OutboxArgs, state: 'firing' | 'resolved'): Alert {
  const { receiver, reason, queue } = context;
  return {
    name: RECEIVER_AWAY,
    severity: state === 'firing' ? 'critical' : 'info',
    text:
      state === 'firing'
        ? `The receiver ${receiver} takes no alerts: ${reason ?? 'it does not answer'}; ${queue.length} wait.`
        : `The receiver ${receiver} takes alerts again.`,
    labels: { receiver, state },
  };
}
