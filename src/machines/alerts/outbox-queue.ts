/** Context and events of the machine `outbox.ts`, and its queue: what is posted next, and when again. */
import { type ClockSet, moved } from '../clock-set.ts';
import type { Alert } from '../effect.ts';
import type { Queued } from './notice.ts';

/** How a receiver answered. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** The queue of one receiver. Times are epoch milliseconds. */
export interface OutboxContext {
  readonly receiver: string;
  readonly batchMs: number;
  /** How often everything that fires is posted again, for a receiver that forgets; 0 for one that does not. */
  readonly repeatMs?: number | undefined;
  /** When it was told of everything, or began to be told. */
  readonly repostedAt?: number | undefined;
  /** Oldest first. */
  readonly queue: readonly Queued[];
  /** Ids that were queued lately, to recognise one that comes again. */
  readonly recent: readonly string[];
  /** How many of the queue are in the current post; a post that failed is repeated with the same items. */
  readonly sending: number;
  readonly sent: number;
  readonly sentAt?: number | undefined;
  /** Posts in a row that failed. */
  readonly failures: number;
  readonly failingSince?: number | undefined;
  readonly reason?: string | undefined;
  /** The receiver's `Retry-After`, milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** Its last answer, bounded and without its own address. */
  readonly answer?: Answer | undefined;
  /** Notices that were dropped because they were too old or the queue was full. */
  readonly lost: number;
}

export type OutboxEvent =
  | { readonly type: 'QUEUE'; readonly item: Queued }
  | { readonly type: 'CONFIGURE'; readonly batchMs: number; readonly repeatMs?: number }
  | { readonly type: 'POSTED'; readonly at: number; readonly answer: Answer }
  /** The receiver was told of everything that fires; with nothing to tell, nothing was posted. */
  | { readonly type: 'REPOSTED'; readonly at: number; readonly count: number; readonly answer?: Answer }
  | {
      readonly type: 'REFUSED';
      readonly at: number;
      readonly reason: string;
      readonly answer?: Answer;
      readonly retryAfterMs?: number;
    }
  /** An operator has fixed the receiver, and asks for a post at once. */
  | { readonly type: 'RETRY'; readonly at: number }
  | ClockSet
  | { readonly type: 'effect.failed'; readonly code?: string };

export interface OutboxArgs {
  readonly context: OutboxContext;
  readonly event: OutboxEvent;
}

/** The most notices that wait: the 201st drops the oldest. */
const MAX_QUEUED = 200;
/** Ids that are remembered, to recognise a notice that is queued twice. */
const MAX_RECENT = 200;
/** Notices in one post. */
const BATCH_SIZE = 20;
/** An older notice is dropped. */
const MAX_AGE_MS = 86_400_000;
/** Failures in a row after which the other receivers are notified. */
const REPORT_AFTER = 5;
/** The longest pause that a receiver may ask for, milliseconds. */
const LONGEST_WAIT_MS = 3_600_000;
/** The alert that a receiver accepts nothing; it goes to all other receivers. */
export const RECEIVER_AWAY = 'alerts.receiver_away';

/** Chooses the next post: one that failed is repeated unchanged, so that its receiver recognises it. */
export function take({ context: { queue, sending } }: OutboxArgs): Partial<OutboxContext> {
  return { sending: sending > 0 ? sending : Math.min(queue.length, BATCH_SIZE) };
}

/** A full queue drops its oldest notice, never the newest and never what is being posted. */
export function enqueue({ context, event }: OutboxArgs): Partial<OutboxContext> {
  if (event.type !== 'QUEUE' || typeof event.item?.id !== 'string') return {};
  const { sending, recent, lost } = context;
  const { item } = event;
  // A newer reminder replaces an older one of the same condition.
  const queue = context.queue.filter((each, index) => index < sending || !isReplacedBy(each, item));
  const full = queue.length >= MAX_QUEUED;
  const kept = full ? [...queue.slice(0, sending), ...queue.slice(sending + 1)] : queue;
  return {
    queue: [...kept, item],
    recent: [...recent, item.id].slice(-MAX_RECENT),
    lost: full ? lost + 1 : lost,
  };
}

const isReplacedBy = ({ notice: old }: Queued, { notice }: Queued): boolean =>
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
    retryAfterMs: undefined,
    ...(event.type === 'POSTED' && {
      sentAt: event.at,
      answer: event.answer,
      repostedAt: context.repostedAt ?? event.at,
    }),
  };
}

/** The receiver was told of everything that fires. */
export function reposted({ event }: OutboxArgs): Partial<OutboxContext> {
  if (event.type !== 'REPOSTED') return {};
  const { at, answer } = event;
  const fine = { failures: 0, failingSince: undefined, reason: undefined, retryAfterMs: undefined };
  return { ...fine, repostedAt: at, sentAt: at, ...(answer && { answer }) };
}

/** The time until everything is posted again: a minute after the last time, however often changes are posted meanwhile. */
export function repeatDelayOf({
  repeatMs = 0,
  sentAt = 0,
  repostedAt = sentAt,
  retryAfterMs = 0,
}: OutboxContext): number {
  const due = repeatMs - Math.max(0, sentAt - repostedAt);
  return Math.max(0, due, Math.min(retryAfterMs, LONGEST_WAIT_MS)) || 0;
}

export function refused({ context, event }: OutboxArgs): Partial<OutboxContext> {
  const answered = event.type === 'REFUSED';
  return {
    failures: context.failures + 1,
    failingSince: context.failingSince ?? (answered ? event.at : undefined),
    reason: answered ? event.reason : 'it does not answer in time',
    retryAfterMs: answered ? event.retryAfterMs : undefined,
    answer: answered ? event.answer : undefined,
  };
}

/** The clock was set. A notice keeps its time, by which a receiver recognises it; what it waited is counted apart. */
export function followClock({ context, event }: OutboxArgs): Partial<OutboxContext> {
  if (event.type !== 'CLOCK_SET' || !Number.isFinite(event.byMs)) return {};
  const { byMs } = event;
  return {
    ...moved(context, byMs, 'repostedAt', 'sentAt', 'failingSince'),
    queue: context.queue.map((item) => ({ ...item, movedMs: (item.movedMs ?? 0) + byMs })),
  };
}

/** Drops and counts what is older than a day. */
export function giveUp({ context, event }: OutboxArgs): Partial<OutboxContext> {
  if (event.type !== 'REFUSED') return {};
  const queue = context.queue.filter(({ at, movedMs = 0 }) => event.at - at - movedMs < MAX_AGE_MS);
  const gone = context.queue.length - queue.length;
  return gone === 0 ? {} : { queue, sending: 0, lost: context.lost + gone };
}

/** 5 s, doubled each time up to five minutes, or what the receiver asked for. */
export function backoffOf({ failures, retryAfterMs }: OutboxContext): number {
  const own = Math.min(5_000 * 2 ** Math.max(0, failures - 1), 300_000);
  return Math.min(Math.max(own, retryAfterMs ?? 0), LONGEST_WAIT_MS);
}

/** Whether this failure is the one at which the other receivers are notified. */
export const outageBegins = ({ failures }: OutboxContext): boolean => failures === REPORT_AFTER;
/** Whether the other receivers were notified of the outage. */
export const outageReported = ({ failures }: OutboxContext): boolean => failures >= REPORT_AFTER;

/** The alert to the other receivers that this one accepts no alerts, or accepts them again. */
export function outageAlert({ context }: OutboxArgs, state: 'firing' | 'resolved'): Alert {
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
