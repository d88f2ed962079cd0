import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import type { Queued } from './alert.ts';

/** How a receiver answered. */
export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** The queue of one receiver. Times are epoch milliseconds. */
export interface OutboxContext {
  readonly receiver: string;
  readonly gatherMs: number;
  /** Oldest first. */
  readonly queue: readonly Queued[];
  /** Ids that were queued of late, to know one that comes again. */
  readonly recent: readonly string[];
  /** How many of the queue are in the post that is under way, or is made again: it stays the same one until it is taken. */
  readonly sending: number;
  readonly sent: number;
  readonly sentAt?: number | undefined;
  /** Posts in a row that failed. */
  readonly failures: number;
  readonly failingSince?: number | undefined;
  readonly reason?: string | undefined;
  /** What the receiver itself asked to wait, milliseconds. */
  readonly askedMs?: number | undefined;
  /** What it said last, bounded and without its own address. */
  readonly answer?: Answer | undefined;
  /** Notices that were given up for age or for want of room. */
  readonly lost: number;
}

export type OutboxEvent =
  | { readonly type: 'QUEUE'; readonly item: Queued }
  | { readonly type: 'CONFIGURE'; readonly gatherMs: number }
  | { readonly type: 'POSTED'; readonly at: number; readonly answer: Answer }
  | {
      readonly type: 'REFUSED';
      readonly at: number;
      readonly reason: string;
      readonly answer?: Answer;
      readonly retryAfterMs?: number;
    }
  /** Somebody fixed the receiver and does not want to wait. */
  | { readonly type: 'RETRY'; readonly at: number }
  | { readonly type: 'effect.failed'; readonly code?: string };

export interface OutboxArgs {
  readonly context: OutboxContext;
  readonly event: OutboxEvent;
}

/** Notices that wait at most; the oldest makes room. */
export const QUEUE_KEPT = 200;
export const RECENT_KEPT = 200;
export const BATCH = 20;
/** An alert so old says nothing any more. */
export const KEPT_MS = 86_400_000;
/** Failures in a row after which other receivers are told. */
export const TELL_AFTER = 5;
/** Told to every receiver but the one that it is of. */
export const RECEIVER_AWAY = 'alerts.receiver_away';

const queueUp = { guard: 'known' } as const;
const isBack = {
  type: 'alert.raise',
  params: (args: OutboxArgs): Alert => away(args, 'resolved'),
} as const;

/**
 * What is still to be told to one receiver. The log is the outbox: a notice leaves it when the receiver has answered
 * with success, and after a crash the same post is made again under the same id, by which a receiver knows it.
 */
export const alertOutbox = setup({
  types: {
    context: {} as OutboxContext,
    events: {} as OutboxEvent,
    input: {} as { readonly receiver: string; readonly gatherMs?: number } | undefined,
  },
  delays: {
    /** What belongs together comes together. */
    gather: ({ context }) => context.gatherMs,
    backoff: ({ context }) => backoffOf(context),
  },
  guards: {
    known: ({ context, event }) => event.type === 'QUEUE' && context.recent.includes(event.item?.id),
    empty: ({ context }) => context.queue.length === 0,
    restIsEmpty: ({ context }) => context.queue.length <= context.sending,
    toTell: ({ context }) => isToTell(context),
    backEmpty: ({ context }) => isTold(context) && context.queue.length <= context.sending,
    back: ({ context }) => isTold(context),
  },
  actions: {
    'alert.raise': effect<Alert>(),
    'alerts.post': effect<{ receiver: string; items: readonly Queued[] }>(),
    enqueue: assign(enqueue),
    configure: assign(({ event }) => (event.type === 'CONFIGURE' ? { gatherMs: event.gatherMs } : {})),
    take: assign(take),
    posted: assign(posted),
    refused: assign(refused),
    giveUp: assign(giveUp),
  },
}).createMachine({
  id: 'alerts-outbox',
  context: ({ input }) => ({
    receiver: input?.receiver ?? '',
    gatherMs: input?.gatherMs ?? 2_000,
    queue: [],
    recent: [],
    sending: 0,
    sent: 0,
    failures: 0,
    lost: 0,
  }),
  initial: 'idle',
  on: {
    QUEUE: [queueUp, { actions: 'enqueue' }],
    CONFIGURE: { actions: 'configure' },
  },
  states: {
    idle: { on: { QUEUE: [queueUp, { target: 'gathering', actions: 'enqueue' }] } },
    gathering: { after: { gather: 'sending' } },
    sending: {
      entry: [
        'take',
        {
          type: 'alerts.post',
          params: ({ context }: OutboxArgs) => ({
            receiver: context.receiver,
            items: context.queue.slice(0, context.sending),
          }),
        },
      ],
      on: {
        POSTED: [
          { guard: 'backEmpty', target: 'idle', actions: [isBack, 'posted'] },
          { guard: 'back', target: 'gathering', actions: [isBack, 'posted'] },
          { guard: 'restIsEmpty', target: 'idle', actions: 'posted' },
          { target: 'gathering', actions: 'posted' },
        ],
        REFUSED: 'failed',
        'effect.failed': 'failed',
      },
    },
    /** Decides what the failure means before it waits. */
    failed: {
      entry: ['refused', 'giveUp'],
      always: [
        { guard: 'empty', target: 'idle' },
        {
          guard: 'toTell',
          target: 'waiting',
          actions: {
            type: 'alert.raise',
            params: (args: OutboxArgs): Alert => away(args, 'firing'),
          },
        },
        { target: 'waiting' },
      ],
    },
    waiting: { after: { backoff: 'sending' }, on: { RETRY: 'sending' } },
  },
});

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
