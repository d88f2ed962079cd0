import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import type { Queued } from './notice.ts';
import {
  backoffOf,
  enqueue,
  followClock,
  giveUp,
  type OutboxArgs,
  type OutboxContext,
  type OutboxEvent,
  outageAlert,
  outageBegins,
  outageReported,
  posted,
  refused,
  repeatDelayOf,
  reposted,
  take,
} from './outbox-queue.ts';

/** The alerts hear that their notices were taken. */
const reportTaken = {
  type: 'alerts.taken',
  params: ({ context, event }: OutboxArgs) => ({
    receiver: context.receiver,
    at: 'at' in event ? event.at : 0,
    alerts: [
      ...new Set(context.queue.slice(0, context.sending).flatMap(({ notice }) => notice?.alert ?? [])),
    ],
  }),
} as const;
const ignoreDuplicate = { guard: 'duplicate' } as const;
const raiseRecovery = {
  type: 'alerts.raise',
  params: (args: OutboxArgs): Alert => outageAlert(args, 'resolved'),
} as const;

/**
 * The notices that wait for one receiver. A notice stays in the queue until the receiver has answered with success. After a
 * crash the same post is made again under the same id, by which the receiver recognises it.
 */
export const alertOutbox = setup({
  types: {
    context: {} as OutboxContext,
    events: {} as OutboxEvent,
    input: {} as
      | { readonly receiver: string; readonly batchMs?: number; readonly repeatMs?: number }
      | undefined,
  },
  delays: {
    /** Notices that come together are posted together. */
    batch: ({ context }) => context.batchMs,
    backoff: ({ context }) => backoffOf(context),
    repeat: ({ context }) => repeatDelayOf(context),
  },
  guards: {
    duplicate: ({ context, event }) => event.type === 'QUEUE' && context.recent.includes(event.item?.id),
    waits: ({ context }) => context.queue.length > 0,
    repeats: ({ context }) => (context.repeatMs ?? 0) > 0,
    willRepeat: ({ event }) => event.type === 'CONFIGURE' && (event.repeatMs ?? 0) > 0,
    nothingFires: ({ event }) => event.type === 'REPOSTED' && event.count === 0,
    outageBegins: ({ context }) =>
      outageBegins(context) && (context.queue.length > 0 || (context.repeatMs ?? 0) > 0),
    reported: ({ context }) => outageReported(context),
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    'alerts.post': effect<{ receiver: string; items: readonly Queued[] }>(),
    'alerts.repost': effect<{ receiver: string }>(),
    'alerts.taken': effect<{ receiver: string; at: number; alerts: readonly string[] }>(),
    enqueue: assign(enqueue),
    configure: assign(({ event }) =>
      event.type === 'CONFIGURE' ? { batchMs: event.batchMs, repeatMs: event.repeatMs } : {},
    ),
    reposted: assign(reposted),
    forgetRepost: assign({ repostedAt: undefined }),
    take: assign(take),
    posted: assign(posted),
    refused: assign(refused),
    giveUp: assign(giveUp),
    followClock: assign(followClock),
  },
}).createMachine({
  id: 'alerts-outbox',
  context: ({ input }) => ({
    receiver: input?.receiver ?? '',
    batchMs: input?.batchMs ?? 2_000,
    repeatMs: input?.repeatMs,
    queue: [],
    recent: [],
    sending: 0,
    sent: 0,
    failures: 0,
    lost: 0,
  }),
  initial: 'idle',
  on: {
    QUEUE: [ignoreDuplicate, { actions: 'enqueue' }],
    CONFIGURE: { actions: 'configure' },
    CLOCK_SET: { actions: 'followClock' },
  },
  states: {
    idle: {
      on: {
        QUEUE: [ignoreDuplicate, { target: 'batching', actions: 'enqueue' }],
        CONFIGURE: [
          { guard: 'willRepeat', target: 'holding', actions: 'configure' },
          { actions: 'configure' },
        ],
      },
    },
    /** Nothing waits. A receiver may forget what is not repeated, so everything that fires is posted once a minute. */
    holding: {
      after: { repeat: [{ guard: 'repeats', target: 'reposting' }, { target: 'idle' }] },
      on: { QUEUE: [ignoreDuplicate, { target: 'batching', actions: 'enqueue' }] },
    },
    reposting: {
      entry: {
        type: 'alerts.repost',
        params: ({ context }: OutboxArgs) => ({ receiver: context.receiver }),
      },
      on: {
        REPOSTED: [
          { guard: 'nothingFires', target: 'ended', actions: 'forgetRepost' },
          { guard: 'reported', target: 'settled', actions: [raiseRecovery, 'reposted'] },
          { target: 'settled', actions: 'reposted' },
        ],
        REFUSED: 'failed',
        'effect.failed': 'failed',
      },
    },
    /** Choice: nothing fires any more, so nothing is posted again before the next notice. */
    ended: { always: [{ guard: 'waits', target: 'batching' }, { target: 'idle' }] },
    /** Choice: is anything left to post, or to be told again? */
    settled: {
      always: [
        { guard: 'waits', target: 'batching' },
        { guard: 'repeats', target: 'holding' },
        { target: 'idle' },
      ],
    },
    batching: { after: { batch: 'sending' } },
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
          { guard: 'reported', target: 'settled', actions: [raiseRecovery, reportTaken, 'posted'] },
          { target: 'settled', actions: [reportTaken, 'posted'] },
        ],
        REFUSED: 'failed',
        'effect.failed': 'failed',
      },
    },
    /** Choice: is anything left to post, and is this failure the one to report? */
    failed: {
      entry: ['refused', 'giveUp'],
      always: [
        {
          guard: 'outageBegins',
          target: 'unsettled',
          actions: {
            type: 'alerts.raise',
            params: (args: OutboxArgs): Alert => outageAlert(args, 'firing'),
          },
        },
        { target: 'unsettled' },
      ],
    },
    /** Choice: what waits is posted after a pause, and what fires is posted once more. */
    unsettled: {
      always: [
        { guard: 'waits', target: 'waiting' },
        { guard: 'repeats', target: 'holding' },
        { target: 'idle' },
      ],
    },
    waiting: { after: { backoff: 'sending' }, on: { RETRY: 'sending' } },
  },
});
