import { assign, setup } from 'xstate';
import { effect } from '../effect.ts';
import {
  type AlertArgs,
  type AlertContext,
  type AlertEvent,
  type Notice,
  SAME_EVENT_MS,
} from './alert-shapes.ts';
import {
  begin,
  climb,
  delayOf,
  isNew,
  newcomers,
  noticeTo,
  regrade,
  regradeQuietly,
  repeat,
} from './ladder.ts';

const notify = (state: Notice['state']) =>
  ({ type: 'alerts.notify', params: (args: AlertArgs) => noticeTo(args, state) }) as const;

const notifyNewcomers = {
  type: 'alerts.notify',
  params: (args: AlertArgs) => ({
    to: newcomers(args),
    notice: { ...noticeTo(args, 'firing').notice, state: 'firing' as const },
  }),
} as const;

const isKind =
  (kind: 'firing' | 'resolved' | 'event') =>
  ({ event }: AlertArgs): boolean =>
    event.type === 'RAISED' && event.kind === kind;

/**
 * One condition that people are told of, and the ladder of who is told next while nobody acknowledges it. It is told once
 * for each change: what comes again unchanged is counted, a reminder comes at the promised spacing, and an
 * acknowledgement or a silence ends by itself.
 */
export const alert = setup({
  types: { context: {} as AlertContext, events: {} as AlertEvent },
  delays: {
    next: ({ context }) => delayOf(context),
    acknowledged: ({ context }) => Math.max(0, (context.ack?.until ?? context.at) - context.at),
    silence: ({ context }) => Math.max(0, (context.silentUntil ?? context.at) - context.at),
  },
  guards: {
    heard: ({ context, event }) => event.type === 'RAISED' && context.causes.includes(`${event.cause}`),
    silent: ({ event }) => event.type === 'RAISED' && (event.silentUntil ?? 0) > event.at,
    firing: isKind('firing'),
    again: (args) => isKind('firing')(args) && args.event.type === 'RAISED' && args.event.again === true,
    resolved: isKind('resolved'),
    newEvent: (args) => isKind('event')(args) && isNew(args, SAME_EVENT_MS),
    event: isKind('event'),
    newcomers: (args) => newcomers(args).length > 0,
    resolvedToSomebody: (args) => isKind('resolved')(args) && args.context.informed.length > 0,
  },
  actions: {
    'alerts.notify': effect<{ to: readonly string[]; notice: Notice }>(),
    begin: assign(begin),
    climb: assign(climb),
    repeat: assign(repeat),
    regrade: assign(regrade),
    regradeQuietly: assign(regradeQuietly),
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
    climbed: 0,
    informed: [],
    since: 0,
    at: 0,
    causes: [],
    count: 0,
  },
  initial: 'quiet',
  on: { RAISED: { guard: 'heard' } },
  states: {
    quiet: {
      on: {
        RAISED: [
          { guard: 'heard' },
          { guard: 'resolved', actions: 'end' },
          { guard: 'newEvent', actions: ['begin', notify('event')] },
          { guard: 'event', actions: 'repeat' },
          { guard: 'silent', target: 'firing.silenced', actions: 'begin' },
          { target: 'firing.told', actions: ['begin', notify('firing'), 'climb'] },
        ],
      },
    },
    firing: {
      initial: 'told',
      on: {
        RAISED: [
          { guard: 'heard' },
          { guard: 'resolvedToSomebody', target: 'quiet', actions: [notify('resolved'), 'end'] },
          { guard: 'resolved', target: 'quiet', actions: 'end' },
          { actions: 'repeat' },
        ],
        ACKNOWLEDGE: { target: '.acknowledged', actions: 'acknowledge' },
        SILENCE: { target: '.silenced', actions: 'silence' },
        LADDER: { actions: 'regradeQuietly' },
      },
      states: {
        told: {
          after: { next: { target: 'told', reenter: true, actions: [notify('reminder'), 'climb'] } },
          on: {
            LADDER: [{ guard: 'newcomers', actions: [notifyNewcomers, 'regrade'] }, { actions: 'regrade' }],
            // Whoever raised it keeps a spacing of its own.
            RAISED: [
              { guard: 'heard' },
              {
                guard: 'again',
                target: 'told',
                reenter: true,
                actions: ['repeat', notify('reminder'), 'climb'],
              },
              {
                guard: 'resolvedToSomebody',
                target: '#alerts-alert.quiet',
                actions: [notify('resolved'), 'end'],
              },
              { guard: 'resolved', target: '#alerts-alert.quiet', actions: 'end' },
              { actions: 'repeat' },
            ],
          },
        },
        acknowledged: {
          after: { acknowledged: { target: 'told', actions: [notify('reminder'), 'climb'] } },
        },
        silenced: {
          after: { silence: { target: 'told', actions: [notify('firing'), 'climb'] } },
          on: { UNSILENCE: { target: 'told', actions: [notify('firing'), 'climb'] } },
        },
      },
    },
  },
});
