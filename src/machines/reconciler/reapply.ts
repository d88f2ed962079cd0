import { assign, setup } from 'xstate';
import { effect } from '../effect.ts';

/** Times are milliseconds. */
export interface ReapplyContext {
  /** Between the end of one reapply and the begin of the next. */
  readonly everyMs: number;
  /** Between two questions while somebody's transaction is pending. */
  readonly waitMs: number;
  /** Interfaces whose address is configured and not on the link. */
  readonly wanted: readonly string[];
  /** Why the last one had no effect, if it had none. */
  readonly lastError?: string | undefined;
}

export type ReapplyEvent =
  | { type: 'WANTED'; intf: string; everyMs: number; waitMs: number }
  | { type: 'SETTLED'; intf: string }
  | { type: 'REAPPLIED' }
  | { type: 'PENDING' }
  | { type: 'NOT_REAPPLIED'; reason: string }
  | { type: 'effect.failed'; effect: string; code: string; message: string }
  | { type: 'effect.lost'; effect: string };

export const reapplyDefaults = { everyMs: 3_600_000, waitMs: 5_000 } as const;

/**
 * Has the router apply its current config again, for all legs together: at most once in a while, because every reapply takes
 * all networks down for a moment, and never while a transaction is pending, because some daemons would commit it.
 */
export const reapply = setup({
  types: {
    context: {} as ReapplyContext,
    events: {} as ReapplyEvent,
  },
  delays: {
    rest: ({ context }) => context.everyMs,
    wait: ({ context }) => context.waitMs,
  },
  guards: {
    isWanted: ({ context }) => context.wanted.length > 0,
    lastSettled: ({ context, event }) =>
      event.type === 'SETTLED' && context.wanted.every((intf) => intf === event.intf),
  },
  actions: {
    'reconciler.reapply': effect<{ wanted: readonly string[] }>(),
    want: assign(({ context, event }) => {
      if (event.type !== 'WANTED') return {};
      const { intf = '', everyMs = context.everyMs, waitMs = context.waitMs } = event;
      return { everyMs, waitMs, wanted: [...context.wanted.filter((each) => each !== intf), intf] };
    }),
    settle: assign(({ context: { wanted }, event }) =>
      event.type === 'SETTLED' ? { wanted: wanted.filter((each) => each !== event.intf) } : {},
    ),
    noteReapplied: assign({ lastError: undefined }),
    noteFault: assign(({ event }) => ({
      lastError:
        event.type === 'NOT_REAPPLIED'
          ? event.reason
          : event.type === 'effect.failed'
            ? event.message
            : 'the process ended before the router answered',
    })),
  },
}).createMachine({
  id: 'reconciler-reapply',
  context: () => ({ ...reapplyDefaults, wanted: [] }),
  initial: 'idle',
  on: {
    WANTED: { actions: 'want' },
    SETTLED: { actions: 'settle' },
  },
  states: {
    idle: {
      on: { WANTED: { target: 'applying', actions: 'want' } },
    },

    applying: {
      entry: {
        type: 'reconciler.reapply',
        params: ({ context: { wanted } }) => ({ wanted }),
      },
      on: {
        REAPPLIED: { target: 'resting', actions: 'noteReapplied' },
        PENDING: 'waiting',
        // None of these proves that nothing was applied, so each counts as one.
        NOT_REAPPLIED: { target: 'resting', actions: 'noteFault' },
        'effect.failed': { target: 'resting', actions: 'noteFault' },
        'effect.lost': { target: 'resting', actions: 'noteFault' },
      },
    },

    /** Somebody's transaction is pending. No event says when it ends. */
    waiting: {
      after: { wait: [{ guard: 'isWanted', target: 'applying' }, { target: 'idle' }] },
      on: { SETTLED: { guard: 'lastSettled', target: 'idle', actions: 'settle' } },
    },

    resting: {
      after: { rest: [{ guard: 'isWanted', target: 'applying' }, { target: 'idle' }] },
    },
  },
});
