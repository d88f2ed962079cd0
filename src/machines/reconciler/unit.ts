import { assign, setup } from 'xstate';
import { type ClockSet, moved } from '../clock-set.ts';
import { effect } from '../effect.ts';

export interface UnitContext {
  /** Who stopped it, when, and until when at the latest; epoch milliseconds. */
  readonly pause?: { readonly by: string; readonly at: number; readonly until: number } | undefined;
}

export type UnitEvent =
  | { type: 'PAUSE'; at: number; by: string; forMs: number }
  | { type: 'RESUME'; by: string }
  | ClockSet;

/** The longest pause, milliseconds. */
export const LONGEST_PAUSE_MS = 1_800_000;

/**
 * Whether the reconciler runs (R28, R33). An operator may stop it for a limited time, to check that its absence is noticed.
 * It starts again by itself, also after a restart of the process.
 */
export const unit = setup({
  types: { context: {} as UnitContext, events: {} as UnitEvent },
  delays: {
    bound: ({ context: { pause } }) => (pause ? Math.max(0, pause.until - pause.at) || 0 : 0),
  },
  actions: {
    'reconciler.stopped': effect(),
    'reconciler.started': effect(),
    stop: assign(({ event }) => {
      if (event.type !== 'PAUSE') return {};
      const { by, at, forMs } = event;
      return { pause: { by, at, until: at + Math.min(Math.max(forMs, 0), LONGEST_PAUSE_MS) } };
    }),
    start: assign({ pause: undefined }),
    followClock: assign(({ context: { pause }, event }) =>
      pause && event.type === 'CLOCK_SET'
        ? { pause: { ...pause, ...moved(pause, event.byMs, 'at', 'until') } }
        : {},
    ),
  },
}).createMachine({
  id: 'reconciler-unit',
  context: {},
  initial: 'running',
  states: {
    running: { on: { PAUSE: { target: 'paused', actions: ['stop', 'reconciler.stopped'] } } },
    paused: {
      after: { bound: { target: 'running', actions: ['start', 'reconciler.started'] } },
      on: {
        RESUME: { target: 'running', actions: ['start', 'reconciler.started'] },
        CLOCK_SET: { actions: 'followClock' },
      },
    },
  },
});
