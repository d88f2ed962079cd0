import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import {
  type Args,
  changed,
  diagnosis,
  firing,
  type MonitorContext,
  type MonitorEvent,
  type MonitorSettings,
  RESTARTS_FORGIVEN,
  resolved,
  risen,
  settingsOf,
  timeOf,
} from './diagnosis.ts';

const raiseFiring = { type: 'alert.raise', params: ({ context }: Args) => firing(context) } as const;
const raiseAgain = {
  type: 'alert.raise',
  params: ({ context }: Args) => firing(context, context.reminders),
} as const;
const raiseBack = {
  type: 'alert.raise',
  params: ({ context }: Args) => resolved(context, 'beats again'),
} as const;
const raiseSet = {
  type: 'alert.raise',
  params: ({ context, event }: Args) =>
    resolved(context, event.type === 'PAUSE' ? `was paused by ${event.by}` : 'is no longer watched'),
} as const;

/** What a beat does while nothing is wrong. */
const heard = [
  { guard: 'up', target: '#uptime-monitor-monitor.up', actions: ['hear', 'rise'], reenter: true },
  { target: '#uptime-monitor-monitor.down', actions: ['hear', 'fall', raiseFiring] },
] as const;

/** A restart of ours: beats that came meanwhile were not heard, so the silence is given its time again. */
const watched = (state: 'waiting' | 'up' | 'late') =>
  [
    {
      guard: 'forgivable',
      target: `#uptime-monitor-monitor.${state}`,
      actions: ['configure', 'forgive'],
      reenter: true,
    },
    { actions: 'configure' },
  ] as const;

/**
 * One push monitor (O16): silence is never health, so it falls by itself when beats stop, and says why in one sentence
 * with what is known of the sender's last run. A restart of the monitor is no fault of the sender.
 */
export const pushMonitor = setup({
  types: {
    context: {} as MonitorContext,
    events: {} as MonitorEvent,
    input: {} as Partial<MonitorSettings> | undefined,
  },
  delays: {
    overdue: ({ context }) => context.waitMs,
    lost: ({ context }) => context.lateMs,
    reminder: ({ context }) => context.remindMs,
    acknowledged: ({ context }) => (context.ack ? Math.max(0, context.ack.until - context.ack.at) : 0),
  },
  guards: {
    up: ({ event }) => event.type === 'BEAT' && event.up === true,
    forgivable: ({ context }) => context.restarts < RESTARTS_FORGIVEN,
  },
  actions: {
    'alert.raise': effect<Alert>(),
    configure: assign(({ event }) => settingsOf(event)),
    begin: assign(({ context, event }) => ({
      armedAt: timeOf({ context, event }, 0),
      waitMs: context.intervalMs,
      lateMs: context.graceMs,
      restarts: 0,
    })),
    hear: assign(({ context, event }) =>
      event.type === 'BEAT'
        ? {
            beats: context.beats + 1,
            lastAt: timeOf({ context, event }, 0),
            lastMsg: event.msg,
            lastPing: event.ping,
            armedAt: timeOf({ context, event }, 0),
            waitMs: context.intervalMs,
            lateMs: context.graceMs,
            restarts: 0,
          }
        : {},
    ),
    forgive: assign(({ context, event }) => ({
      armedAt: timeOf({ context, event }, 0),
      waitMs: context.intervalMs,
      lateMs: Math.max(context.graceMs, context.changes.at(-1)?.to === 'late' ? context.intervalMs : 0),
      // Before the first watch there was no run that could have missed anything.
      ...(context.armedAt === 0
        ? { since: timeOf({ context, event }, 0) }
        : { restarts: context.restarts + 1 }),
    })),
    /** It was something else; a beat of one that is up changes nothing. */
    rise: assign(({ context, event }) => ({
      told: undefined,
      trouble: undefined,
      ack: undefined,
      reminders: 0,
      ...risen(context, timeOf({ context, event }, 0)),
    })),
    slip: assign(({ context, event }) =>
      changed(context, timeOf({ context, event }, context.waitMs), 'late', 'no beat when one was due'),
    ),
    /** From silence the time is known; the sender's own word comes with it. */
    fall: assign(({ context, event }) => {
      const at = timeOf({ context, event }, context.waitMs + context.lateMs);
      const told = event.type === 'BEAT' ? event.msg || 'it gave no reason' : undefined;
      return { told, reminders: 0, ...changed(context, at, 'down', diagnosis({ ...context, told })) };
    }),
    retell: assign(({ event }) => (event.type === 'BEAT' ? { told: event.msg || 'it gave no reason' } : {})),
    learn: assign(({ event }) => (event.type === 'TROUBLE' ? { trouble: event.trouble } : {})),
    count: assign(({ context }) => ({ reminders: context.reminders + 1 })),
    acknowledge: assign(({ event }) =>
      event.type === 'ACK'
        ? {
            ack: {
              at: event.at,
              until: event.at + event.forMs,
              by: event.by,
              ...(event.note !== undefined && { note: event.note }),
            },
          }
        : {},
    ),
    unacknowledge: assign({ ack: undefined }),
    pause: assign(({ context, event }) => ({
      told: undefined,
      ack: undefined,
      reminders: 0,
      ...changed(
        context,
        timeOf({ context, event }, 0),
        'paused',
        event.type === 'PAUSE' ? `by ${event.by}` : 'no longer listed',
      ),
    })),
    resume: assign(({ context, event }) => changed(context, timeOf({ context, event }, 0), 'waiting', '')),
  },
}).createMachine({
  id: 'uptime-monitor-monitor',
  context: ({ input }) => ({
    name: '',
    title: '',
    slug: '',
    intervalMs: 60_000,
    graceMs: 500,
    remindMs: 3_600_000,
    ...input,
    beats: 0,
    waitMs: input?.intervalMs ?? 60_000,
    lateMs: input?.graceMs ?? 500,
    armedAt: 0,
    since: 0,
    restarts: 0,
    reminders: 0,
    changes: [],
  }),
  initial: 'waiting',
  on: {
    TROUBLE: { actions: 'learn' },
    PAUSE: { target: '.paused', actions: 'pause' },
    RELEASE: { target: '.released', actions: 'pause' },
  },
  states: {
    /** No beat has come yet, or none since it was paused. */
    waiting: {
      after: { overdue: { target: 'late', actions: 'slip' } },
      on: {
        BEAT: heard,
        WATCH: [
          { guard: 'forgivable', target: 'waiting', actions: ['configure', 'forgive'], reenter: true },
          { actions: 'configure' },
        ],
      },
    },

    up: {
      after: { overdue: { target: 'late', actions: 'slip' } },
      on: { BEAT: heard, WATCH: watched('up') },
    },

    /** One was due; a person is not told yet. */
    late: {
      after: { lost: { target: 'down', actions: ['fall', raiseFiring] } },
      on: { BEAT: heard, WATCH: watched('late') },
    },

    down: {
      initial: 'told',
      on: {
        BEAT: [
          { guard: 'up', target: 'up', actions: [raiseBack, 'hear', 'rise'] },
          { actions: ['hear', 'retell'] },
        ],
        WATCH: { actions: 'configure' },
        PAUSE: { target: 'paused', actions: [raiseSet, 'pause'] },
        RELEASE: { target: 'released', actions: [raiseSet, 'pause'] },
        ACK: { target: '.acknowledged', actions: 'acknowledge' },
      },
      states: {
        told: {
          after: { reminder: { target: 'told', reenter: true, actions: ['count', raiseAgain] } },
        },
        /** Somebody is at it: no reminders until then. */
        acknowledged: {
          after: { acknowledged: { target: 'told', actions: ['unacknowledge', 'count', raiseAgain] } },
          on: { ACK: { target: 'acknowledged', reenter: true, actions: 'acknowledge' } },
        },
      },
    },

    paused: {
      on: {
        PAUSE: {},
        WATCH: { actions: 'configure' },
        UNPAUSE: { target: 'waiting', actions: ['begin', 'resume'] },
      },
    },

    /** No longer listed; it waits anew when it is listed again. */
    released: {
      on: {
        PAUSE: {},
        RELEASE: {},
        WATCH: { target: 'waiting', actions: ['configure', 'begin', 'resume'] },
      },
    },
  },
});
