import { assign, setup } from 'xstate';
import { effect } from '../effect.ts';
import { broken, delivered, overdue, undelivered, unhealthy, verdict } from './reports.ts';
import {
  type Args,
  DEADLINE_MS,
  type RunReport,
  WARM_UP_MS,
  type WatchdogContext,
  type WatchdogEvent,
} from './run-shapes.ts';

/** Reports how the run ended, and remembers it. */
function ends(name: 'delivered' | 'undelivered' | 'unhealthy' | 'overdue' | 'broken') {
  const reports = {
    delivered: ofContext(delivered),
    undelivered,
    unhealthy,
    overdue: ofContext(overdue),
    broken,
  };
  return [
    { type: 'watchdog.report', params: (args: Args): RunReport => reports[name](args) },
    { type: 'remember', params: (args: Args): RunReport => reports[name](args) },
  ] as const;
}

function ofContext(make: (context: WatchdogContext) => RunReport) {
  return ({ context }: Args): RunReport => make(context);
}

/** What is over waits for the next run; one that comes meanwhile is the run that is under way. */
const rest = { RUN: { target: '#watchdog-run.running', actions: 'begin' } } as const;

/**
 * The runs of the watchdog (O10–O14): checks, then a heartbeat only where all is well. The verdict is the heartbeat;
 * how the run itself ended is told beside it and never in its place.
 */
export const watchdogRun = setup({
  types: { context: {} as WatchdogContext, events: {} as WatchdogEvent },
  delays: { deadline: DEADLINE_MS, warmUp: WARM_UP_MS },
  guards: {
    failed: ({ event }) => event.type === 'CHECKED' && event.failures.length > 0,
    ofCheck: ({ event }) => 'effect' in event && event.effect === 'watchdog.check',
    ofPush: ({ event }) => 'effect' in event && event.effect === 'watchdog.push',
  },
  actions: {
    'watchdog.check': effect(),
    'watchdog.push': effect<{ msg: string; ping: number }>(),
    'watchdog.report': effect<RunReport>(),
    begin: assign(({ context, event }) => ({
      startedAt: event.type === 'RUN' ? event.at : context.startedAt,
    })),
    /** Since when: what failed before keeps its time, what is well again loses it. */
    note: assign(({ context, event }) => {
      if (event.type !== 'CHECKED') return {};
      const failing = Object.fromEntries(
        event.failures.map(({ check }) => [check, context.failing[check] ?? event.time]),
      );
      const { stale, drift, tookMs, at } = event;
      return { failing, stale, drift, tookMs, startedAt: at - tookMs };
    }),
    succeed: assign(({ context, event }) =>
      event.type === 'PUSHED' ? { deliveredAt: event.at, deliveredMsg: verdict(context) } : {},
    ),
    remember: assign({ last: (_, report: RunReport) => report }),
  },
}).createMachine({
  id: 'watchdog-run',
  context: { startedAt: 0, failing: {}, stale: 0, drift: 0, tookMs: 0 },
  initial: 'idle',
  states: {
    idle: { on: { ...rest, START: 'soon' } },

    /** The runtime has just started. */
    soon: {
      after: { warmUp: { target: 'running', actions: 'begin' } },
      on: rest,
    },

    running: {
      initial: 'checking',
      after: { deadline: { target: 'killed', actions: ends('overdue') } },
      states: {
        checking: {
          entry: 'watchdog.check',
          on: {
            CHECKED: [
              { guard: 'failed', target: '#watchdog-run.unhealthy', actions: ['note', ...ends('unhealthy')] },
              { target: 'healthy', actions: 'note' },
            ],
            'effect.failed': { guard: 'ofCheck', target: '#watchdog-run.killed', actions: ends('broken') },
            'effect.lost': { guard: 'ofCheck', target: '#watchdog-run.killed', actions: ends('broken') },
          },
        },
        healthy: { always: 'pushing' },
        pushing: {
          entry: {
            type: 'watchdog.push',
            params: ({ context }) => ({ msg: verdict(context), ping: context.tookMs }),
          },
          on: {
            PUSHED: { target: '#watchdog-run.delivered', actions: ['succeed', ...ends('delivered')] },
            PUSH_REFUSED: { target: '#watchdog-run.pushFailed', actions: ends('undelivered') },
            PUSH_FAILED: { target: '#watchdog-run.pushFailed', actions: ends('undelivered') },
            'effect.failed': { guard: 'ofPush', target: '#watchdog-run.killed', actions: ends('broken') },
            'effect.lost': { guard: 'ofPush', target: '#watchdog-run.killed', actions: ends('broken') },
          },
        },
      },
    },

    delivered: { on: { ...rest, START: 'soon' } },
    /** Healthy, and the heartbeat did not arrive. */
    pushFailed: { on: { ...rest, START: 'soon' } },
    unhealthy: { on: { ...rest, START: 'soon' } },
    /** The run did not end by itself. */
    killed: { on: { ...rest, START: 'soon' } },
  },
});
