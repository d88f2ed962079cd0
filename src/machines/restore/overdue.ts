import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** Times are milliseconds. */
export interface DrillOverdueContext {
  readonly path: string;
  /** Without a drill for so long, a person is told. */
  readonly overdueMs?: number | undefined;
  /** The newest drill's end, or since when one is waited for. */
  readonly since?: number | undefined;
  /** From the newest event on. */
  readonly waitMs: number;
}

export type DrillOverdueEvent =
  /** The runtime starts: what it asks of this path, or that it asks nothing any more. */
  | { readonly type: 'WATCH'; readonly at: number; readonly overdueMs?: number }
  | { readonly type: 'DRILLED'; readonly at: number };

interface Args {
  readonly context: DrillOverdueContext;
  readonly event: DrillOverdueEvent;
}

/** What is no duration would end the wait at once, again and again. */
const durationOf = (ms: number | undefined): number | undefined =>
  typeof ms === 'number' && ms >= 1 ? ms : undefined;

const told = (state: 'firing' | 'resolved', path: string, text: string): Alert => ({
  name: 'restore.overdue',
  severity: state === 'firing' ? 'warning' : 'info',
  text,
  labels: { path, state },
});

const raise = {
  type: 'alert.raise',
  params: ({ context: { path, overdueMs = 0 } }: Args) =>
    told(
      'firing',
      path,
      `No restore drill of path ${path} of the memory store has ended for ${Math.round(overdueMs / 3_600_000)} h.`,
    ),
} as const;

const resolve = {
  type: 'alert.raise',
  params: ({ context: { path }, event }: Args) =>
    told(
      'resolved',
      path,
      event.type === 'DRILLED'
        ? `A restore drill of path ${path} has ended.`
        : `A restore drill of path ${path} is waited for no longer, or otherwise.`,
    ),
} as const;

/**
 * Whether restore drills of one path still come (B8): each path has a wait of its own, for a drill of one proves nothing
 * of the other. The wait goes on over restarts.
 */
export const drillOverdue = setup({
  types: {
    context: {} as DrillOverdueContext,
    events: {} as DrillOverdueEvent,
    input: {} as { readonly path: string } | undefined,
  },
  delays: { overdue: ({ context }) => context.waitMs },
  guards: {
    same: ({ context, event }) => event.type === 'WATCH' && durationOf(event.overdueMs) === context.overdueMs,
    watched: ({ event }) => event.type === 'WATCH' && durationOf(event.overdueMs) !== undefined,
  },
  actions: {
    'alert.raise': effect<Alert>(),
    watch: assign(({ context, event }) => {
      if (event.type !== 'WATCH') return {};
      const overdueMs = durationOf(event.overdueMs);
      const since = context.since ?? event.at;
      return { overdueMs, since, waitMs: Math.max(1, since + (overdueMs ?? 0) - event.at) };
    }),
    drilled: assign(({ context, event }) => ({ since: event.at, waitMs: context.overdueMs ?? 1 })),
  },
}).createMachine({
  id: 'restore-overdue',
  context: ({ input }) => ({ path: input?.path ?? '', waitMs: 1 }),
  initial: 'unwatched',
  states: {
    unwatched: {
      on: {
        WATCH: { guard: 'watched', target: 'waiting', actions: 'watch' },
        DRILLED: { actions: 'drilled' },
      },
    },
    waiting: {
      after: { overdue: { target: 'overdue', actions: raise } },
      on: {
        DRILLED: { target: 'waiting', reenter: true, actions: 'drilled' },
        WATCH: [
          { guard: 'same' },
          { guard: 'watched', target: 'waiting', reenter: true, actions: 'watch' },
          { target: 'unwatched', actions: 'watch' },
        ],
      },
    },
    overdue: {
      on: {
        DRILLED: { target: 'waiting', actions: [resolve, 'drilled'] },
        WATCH: [
          { guard: 'same' },
          { guard: 'watched', target: 'waiting', actions: [resolve, 'watch'] },
          { target: 'unwatched', actions: [resolve, 'watch'] },
        ],
      },
    },
  },
});
