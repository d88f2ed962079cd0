import { assign, setup } from 'xstate';
import { type ClockSet, moved } from '../clock-set.ts';
import { type Alert, effect } from '../effect.ts';

/** Times are milliseconds. */
export interface OverdueContext {
  readonly path: string;
  /** An alert is raised when there was no drill for this time. */
  readonly overdueMs?: number | undefined;
  /** End of the newest drill, or when the first was expected. */
  readonly since?: number | undefined;
  /** The rest of the wait, counted from the newest event. */
  readonly waitMs: number;
}

export type OverdueEvent =
  /** The runtime starts: drills of this path are expected within `overdueMs`, or not at all. */
  | { readonly type: 'WATCH'; readonly at: number; readonly overdueMs?: number }
  | { readonly type: 'DRILLED'; readonly at: number }
  | ClockSet;

interface Args {
  readonly context: OverdueContext;
  readonly event: OverdueEvent;
}

/** Without a positive duration the wait would end at once, again and again. */
const durationOf = (ms: number | undefined): number | undefined =>
  typeof ms === 'number' && ms >= 1 ? ms : undefined;

const alert = (state: 'firing' | 'resolved', path: string, text: string): Alert => ({
  name: 'restore.overdue',
  severity: state === 'firing' ? 'warning' : 'info',
  text,
  labels: { path, state },
});

const raise = {
  type: 'alerts.raise',
  params: ({ context: { path, overdueMs = 0 } }: Args) =>
    alert(
      'firing',
      path,
      `No restore drill of path ${path} of the memory store has ended for ${Math.round(overdueMs / 3_600_000)} h.`,
    ),
} as const;

const resolve = {
  type: 'alerts.raise',
  params: ({ context: { path }, event }: Args) =>
    alert(
      'resolved',
      path,
      event.type === 'DRILLED'
        ? `A restore drill of path ${path} has ended.`
        : `Restore drills of path ${path} are no longer expected, or within another time.`,
    ),
} as const;

/**
 * Watches whether drills of one path still happen (B8). Each path has its own actor, because a drill of one path proves
 * nothing about the other. The wait goes on over restarts.
 */
export const restoreOverdue = setup({
  types: {
    context: {} as OverdueContext,
    events: {} as OverdueEvent,
    input: {} as { readonly path: string } | undefined,
  },
  delays: { overdue: ({ context }) => context.waitMs },
  guards: {
    same: ({ context, event }) => event.type === 'WATCH' && durationOf(event.overdueMs) === context.overdueMs,
    watched: ({ event }) => event.type === 'WATCH' && durationOf(event.overdueMs) !== undefined,
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    watch: assign(({ context, event }) => {
      if (event.type !== 'WATCH') return {};
      const overdueMs = durationOf(event.overdueMs);
      const since = context.since ?? event.at;
      // A drill that lies ahead was seen by a clock that has been set back.
      return {
        overdueMs,
        since,
        waitMs: Math.max(1, Math.min(since, event.at) + (overdueMs ?? 0) - event.at),
      };
    }),
    followClock: assign(({ context, event }) =>
      event.type === 'CLOCK_SET' ? moved(context, event.byMs, 'since') : {},
    ),
    drilled: assign(({ context, event }) => ({ since: event.at, waitMs: context.overdueMs ?? 1 })),
  },
}).createMachine({
  id: 'restore-overdue',
  context: ({ input }) => ({ path: input?.path ?? '', waitMs: 1 }),
  initial: 'unwatched',
  on: { CLOCK_SET: { actions: 'followClock' } },
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
