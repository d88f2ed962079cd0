import { assign, setup } from 'xstate';
import { effect } from '../effect.ts';
import {
  type AlertArgs,
  type AlertContext,
  type AlertEvent,
  advance,
  begin,
  delayOf,
  followClock,
  isNew,
  newReceivers,
  noticeTo,
  repeat,
  reroute,
  rerouteSilently,
  taken,
} from './escalation.ts';
import type { Notice, Notification } from './notice.ts';

/** A notification with the record that raised the alert, from which the log tells its cause. */
function withRecord({ context, event }: AlertArgs, notification: Notification): Notification {
  const { record } = event.type === 'RAISED' ? event : context;
  return { ...notification, ...(record !== undefined && { record }) };
}

/** A one-time event that comes again within this time is counted without another notice. */
const SAME_EVENT_MS = 3_600_000;

const notify = (state: Notice['state']) =>
  ({ type: 'alerts.notify', params: (args: AlertArgs) => withRecord(args, noticeTo(args, state)) }) as const;

const notifyNewReceivers = {
  type: 'alerts.notify',
  params: (args: AlertArgs) =>
    withRecord(args, {
      to: newReceivers(args),
      notice: { ...noticeTo(args, 'firing').notice, state: 'firing' as const },
    }),
} as const;

const isKind =
  (kind: 'firing' | 'resolved' | 'event') =>
  ({ event }: AlertArgs): boolean =>
    event.type === 'RAISED' && event.kind === kind;

/**
 * One condition, and the escalation of who is notified next while nobody acknowledges it. Each change is notified once:
 * what is raised again unchanged is counted, reminders come at their interval, and an acknowledgement or a silence ends by
 * itself.
 */
export const alert = setup({
  types: { context: {} as AlertContext, events: {} as AlertEvent },
  delays: {
    next: ({ context }) => delayOf(context),
    acknowledged: ({ context }) => Math.max(0, (context.ack?.until ?? context.at) - context.at),
    silence: ({ context }) => Math.max(0, (context.silentUntil ?? context.at) - context.at),
  },
  guards: {
    duplicate: ({ context, event }) => event.type === 'RAISED' && context.causes.includes(`${event.cause}`),
    silent: ({ event }) => event.type === 'RAISED' && (event.silentUntil ?? 0) > event.at,
    wasRaised: ({ context }) => context.since > 0,
    firing: isKind('firing'),
    again: (args) => isKind('firing')(args) && args.event.type === 'RAISED' && args.event.again === true,
    resolved: isKind('resolved'),
    newEvent: (args) => isKind('event')(args) && isNew(args, SAME_EVENT_MS),
    event: isKind('event'),
    newReceivers: (args) => newReceivers(args).length > 0,
    resolvedWithReceivers: (args) => isKind('resolved')(args) && args.context.informed.length > 0,
  },
  actions: {
    'alerts.notify': effect<Notification>(),
    begin: assign(begin),
    advance: assign(advance),
    repeat: assign(repeat),
    reroute: assign(reroute),
    rerouteSilently: assign(rerouteSilently),
    taken: assign(taken),
    followClock: assign(followClock),
    acknowledge: assign(({ event }) =>
      event.type === 'ACKNOWLEDGE'
        ? {
            at: event.at,
            ack: {
              by: event.by,
              at: event.at,
              until: event.at + event.forMs,
              ...(event.note !== undefined && { note: event.note }),
            },
          }
        : {},
    ),
    silence: assign(({ event }) =>
      event.type === 'SILENCE' ? { at: event.at, silentUntil: event.until } : {},
    ),
    end: assign((args) => ({ ...begin(args), steps: [], count: 0, silentUntil: undefined })),
  },
}).createMachine({
  id: 'alerts-alert',
  context: {
    steps: [],
    remindMs: 3_600_000,
    stepsTaken: 0,
    informed: [],
    takenAt: {},
    since: 0,
    at: 0,
    causes: [],
    count: 0,
  },
  initial: 'quiet',
  on: {
    RAISED: { guard: 'duplicate' },
    TAKEN: { actions: 'taken' },
    CLOCK_SET: { guard: 'wasRaised', actions: 'followClock' },
  },
  states: {
    quiet: {
      on: {
        RAISED: [
          { guard: 'duplicate' },
          { guard: 'resolved', actions: 'end' },
          { guard: 'newEvent', actions: ['begin', notify('event'), 'advance'] },
          { guard: 'event', actions: 'repeat' },
          { guard: 'silent', target: 'firing.silenced', actions: 'begin' },
          { target: 'firing.notified', actions: ['begin', notify('firing'), 'advance'] },
        ],
      },
    },
    firing: {
      initial: 'notified',
      on: {
        RAISED: [
          { guard: 'duplicate' },
          { guard: 'resolvedWithReceivers', target: 'quiet', actions: [notify('resolved'), 'end'] },
          { guard: 'resolved', target: 'quiet', actions: 'end' },
          { actions: 'repeat' },
        ],
        ACKNOWLEDGE: { target: '.acknowledged', actions: 'acknowledge' },
        SILENCE: { target: '.silenced', actions: 'silence' },
        ESCALATION: { actions: 'rerouteSilently' },
      },
      states: {
        notified: {
          after: { next: { target: 'notified', reenter: true, actions: [notify('reminder'), 'advance'] } },
          on: {
            ESCALATION: [
              { guard: 'newReceivers', actions: [notifyNewReceivers, 'reroute'] },
              { actions: 'reroute' },
            ],
            // A source that repeats an alert on purpose sets the interval of the reminders.
            RAISED: [
              { guard: 'duplicate' },
              {
                guard: 'again',
                target: 'notified',
                reenter: true,
                actions: ['repeat', notify('reminder'), 'advance'],
              },
              {
                guard: 'resolvedWithReceivers',
                target: '#alerts-alert.quiet',
                actions: [notify('resolved'), 'end'],
              },
              { guard: 'resolved', target: '#alerts-alert.quiet', actions: 'end' },
              { actions: 'repeat' },
            ],
          },
        },
        acknowledged: {
          after: { acknowledged: { target: 'notified', actions: [notify('reminder'), 'advance'] } },
        },
        silenced: {
          after: { silence: { target: 'notified', actions: [notify('firing'), 'advance'] } },
          on: { UNSILENCE: { target: 'notified', actions: [notify('firing'), 'advance'] } },
        },
      },
    },
  },
});
