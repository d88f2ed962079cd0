import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import {
  type Args,
  changed,
  diagnosis,
  firing,
  followClock,
  type MonitorContext,
  type MonitorEvent,
  type MonitorSettings,
  RESTARTS_FORGIVEN,
  resolved,
  risen,
  settingsOf,
  timeOf,
} from './diagnosis.ts';
import { withPing } from './pings.ts';

const raiseFiring = { type: 'alerts.raise', params: ({ context }: Args) => firing(context) } as const;
const raiseAgain = {
  type: 'alerts.raise',
  params: ({ context }: Args) => firing(context, context.reminders),
} as const;
const raiseUp = {
  type: 'alerts.raise',
  params: ({ context }: Args) => resolved(context, 'beats again'),
} as const;
const raiseUnwatched = {
  type: 'alerts.raise',
  params: ({ context, event }: Args) =>
    resolved(context, event.type === 'PAUSE' ? `was paused by ${event.by}` : 'is no longer watched'),
} as const;

/** Transitions of a beat while the monitor is not down. */
const onBeat = [
  { guard: 'isUp', target: '#uptime-monitor-monitor.up', actions: ['noteBeat', 'becomeUp'], reenter: true },
  { target: '#uptime-monitor-monitor.down', actions: ['noteBeat', 'becomeDown', raiseFiring] },
] as const;

/** Transitions of a restart: beats sent meanwhile were not received, so the wait for the next one begins again. */
const onWatch = (state: 'waiting' | 'up' | 'late') =>
  [
    {
      guard: 'mayExtendWait',
      target: `#uptime-monitor-monitor.${state}`,
      actions: ['configure', 'extendWait'],
      reenter: true,
    },
    { actions: 'configure' },
  ] as const;

/**
 * One push monitor (O16). Silence is never health: the monitor goes down by itself when beats stop, and says why in one
 * sentence with what is known of the sender's last run. A restart of this process is not counted as a fault of the sender.
 */
export const monitor = setup({
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
    isUp: ({ event }) => event.type === 'BEAT' && event.up === true,
    mayExtendWait: ({ context }) => context.restarts < RESTARTS_FORGIVEN,
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    configure: assign(({ event }) => settingsOf(event)),
    beginWait: assign(({ context, event }) => ({
      armedAt: timeOf({ context, event }, 0),
      waitMs: context.intervalMs,
      lateMs: context.graceMs,
      restarts: 0,
    })),
    noteBeat: assign(({ context, event }) =>
      event.type === 'BEAT'
        ? {
            beats: context.beats + 1,
            lastAt: timeOf({ context, event }, 0),
            lastMsg: event.msg,
            lastPing: event.ping,
            ...(event.ping !== undefined && {
              pings: withPing(context.pings, timeOf({ context, event }, 0), event.ping),
            }),
            armedAt: timeOf({ context, event }, 0),
            waitMs: context.intervalMs,
            lateMs: context.graceMs,
            restarts: 0,
          }
        : {},
    ),
    extendWait: assign(({ context, event }) => ({
      armedAt: timeOf({ context, event }, 0),
      waitMs: context.intervalMs,
      lateMs:
        context.changes.at(-1)?.to === 'late'
          ? Math.max(context.graceMs, context.intervalMs)
          : context.graceMs,
      // The first start is no restart: there was no process that could have missed a beat.
      ...(context.armedAt === 0
        ? { since: timeOf({ context, event }, 0) }
        : { restarts: context.restarts + 1 }),
    })),
    becomeUp: assign(({ context, event }) => ({
      reported: undefined,
      trouble: undefined,
      ack: undefined,
      reminders: 0,
      ...risen(context, timeOf({ context, event }, 0)),
    })),
    becomeLate: assign(({ context, event }) =>
      changed(context, timeOf({ context, event }, context.waitMs), 'late', 'no beat when one was due'),
    ),
    /** Because no beat came, or because the sender reports it. */
    becomeDown: assign(({ context, event }) => {
      const at = timeOf({ context, event }, context.waitMs + context.lateMs);
      const reported = event.type === 'BEAT' ? event.msg || 'it gave no reason' : undefined;
      return { reported, reminders: 0, ...changed(context, at, 'down', diagnosis({ ...context, reported })) };
    }),
    noteReport: assign(({ event }) =>
      event.type === 'BEAT' ? { reported: event.msg || 'it gave no reason' } : {},
    ),
    noteTrouble: assign(({ event }) => (event.type === 'TROUBLE' ? { trouble: event.trouble } : {})),
    countReminder: assign(({ context }) => ({ reminders: context.reminders + 1 })),
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
    followClock: assign(followClock),
    unacknowledge: assign({ ack: undefined }),
    pause: assign(({ context, event }) => ({
      reported: undefined,
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
    TROUBLE: { actions: 'noteTrouble' },
    CLOCK_SET: { actions: 'followClock' },
    PAUSE: { target: '.paused', actions: 'pause' },
    RELEASE: { target: '.released', actions: 'pause' },
  },
  states: {
    /** No beat has come yet, or none since it was paused. */
    waiting: {
      after: { overdue: { target: 'late', actions: 'becomeLate' } },
      on: {
        BEAT: onBeat,
        WATCH: onWatch('waiting'),
      },
    },

    up: {
      after: { overdue: { target: 'late', actions: 'becomeLate' } },
      on: { BEAT: onBeat, WATCH: onWatch('up') },
    },

    /** A beat was due; no alert is raised yet. */
    late: {
      after: { lost: { target: 'down', actions: ['becomeDown', raiseFiring] } },
      on: { BEAT: onBeat, WATCH: onWatch('late') },
    },

    down: {
      initial: 'notified',
      on: {
        BEAT: [
          { guard: 'isUp', target: 'up', actions: [raiseUp, 'noteBeat', 'becomeUp'] },
          { actions: ['noteBeat', 'noteReport'] },
        ],
        WATCH: { actions: 'configure' },
        PAUSE: { target: 'paused', actions: [raiseUnwatched, 'pause'] },
        RELEASE: { target: 'released', actions: [raiseUnwatched, 'pause'] },
        ACK: { target: '.acknowledged', actions: 'acknowledge' },
      },
      states: {
        notified: {
          after: { reminder: { target: 'notified', reenter: true, actions: ['countReminder', raiseAgain] } },
        },
        /** Somebody works on it: no reminders until the time that they gave. */
        acknowledged: {
          after: {
            acknowledged: { target: 'notified', actions: ['unacknowledge', 'countReminder', raiseAgain] },
          },
          on: { ACK: { target: 'acknowledged', reenter: true, actions: 'acknowledge' } },
        },
      },
    },

    paused: {
      on: {
        PAUSE: {},
        WATCH: { actions: 'configure' },
        UNPAUSE: { target: 'waiting', actions: ['beginWait', 'resume'] },
      },
    },

    /** No longer listed; it waits again when it is listed again. */
    released: {
      on: {
        PAUSE: {},
        RELEASE: {},
        WATCH: { target: 'waiting', actions: ['configure', 'beginWait', 'resume'] },
      },
    },
  },
});
