import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import type { Queued } from './alert-shapes.ts';
import type { OutboxArgs, OutboxContext, OutboxEvent } from './outbox-shapes.ts';
import { away, backoffOf, enqueue, giveUp, isTold, isToTell, posted, refused, take } from './outbox-steps.ts';

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
