import { assign, setup } from 'xstate';
import { effect } from '../effect.ts';
import {
  advance,
  begin,
  delayOf,
  isNew,
  newReceivers,
  noticeTo,
  repeat,
  reroute,
  rerouteSilently,
} from './escalation.ts';

/** A step of the escalation: whom to notify, and how long after the step before, while nobody has acknowledged. */
export interface Step {
  readonly to: readonly string[];
  readonly afterMs: number;
}

/** What a receiver is notified of. Times are epoch milliseconds. */
export interface Notice {
  /** `event` happened once; the others are of a condition that lasts. */
  readonly state: 'firing' | 'reminder' | 'resolved' | 'event';
  readonly name: string;
  readonly severity: 'info' | 'warning' | 'critical';
  readonly title: string;
  readonly text: string;
  readonly labels: Readonly<Record<string, string>>;
  /** When the condition began. */
  readonly since: number;
  readonly value?: number;
  readonly threshold?: string;
  readonly window?: string;
  readonly runbook?: string;
}

export interface Acknowledgement {
  readonly by: string;
  readonly at: number;
  readonly until: number;
  readonly note?: string;
}

export type AlertContent = Omit<Notice, 'state' | 'since'>;

/** Somebody raised the alert, and these are the steps that the configuration gives it. */
export interface Raised {
  readonly type: 'RAISED';
  readonly at: number;
  /** The record that raised it, so that an effect that runs twice after a crash counts once. */
  readonly cause: string;
  readonly kind: 'firing' | 'resolved' | 'event';
  /** Its source repeats it on purpose, as a reminder. */
  readonly again?: boolean;
  readonly content: AlertContent;
  readonly steps: readonly Step[];
  /** Between reminders after the last step, milliseconds. */
  readonly remindMs: number;
  /** Nobody is to be notified until then. */
  readonly silentUntil?: number;
}

export type AlertEvent =
  | Raised
  | {
      readonly type: 'ACKNOWLEDGE';
      readonly at: number;
      readonly by: string;
      readonly forMs: number;
      readonly note?: string;
    }
  /** The configuration gives it other steps, for example because a receiver has an address now. */
  | {
      readonly type: 'ESCALATION';
      readonly at: number;
      readonly steps: readonly Step[];
      readonly remindMs: number;
    }
  | { readonly type: 'SILENCE'; readonly at: number; readonly until: number }
  | { readonly type: 'UNSILENCE'; readonly at: number };

export interface AlertContext {
  readonly content?: AlertContent | undefined;
  readonly steps: readonly Step[];
  readonly remindMs: number;
  /** How many steps have been taken. */
  readonly stepsTaken: number;
  /** Receivers that were notified, to be notified of the end. */
  readonly informed: readonly string[];
  readonly since: number;
  /** The time of the newest event that set a delay. */
  readonly at: number;
  /** The causes of the newest raises. */
  readonly causes: readonly string[];
  /** How often it was raised since it began. */
  readonly count: number;
  readonly ack?: Acknowledgement | undefined;
  readonly silentUntil?: number | undefined;
}

export interface AlertArgs {
  readonly context: AlertContext;
  readonly event: AlertEvent;
}

/** A notice in a receiver's queue. */
export interface Queued {
  /** The id of the effect that queued it, so that an effect that runs twice after a crash is sent once. */
  readonly id: string;
  readonly at: number;
  readonly notice: Notice;
}

/** A one-time event that comes again within this time is counted without another notice. */
const SAME_EVENT_MS = 3_600_000;

const notify = (state: Notice['state']) =>
  ({ type: 'alerts.notify', params: (args: AlertArgs) => noticeTo(args, state) }) as const;

const notifyNewReceivers = {
  type: 'alerts.notify',
  params: (args: AlertArgs) => ({
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
    firing: isKind('firing'),
    again: (args) => isKind('firing')(args) && args.event.type === 'RAISED' && args.event.again === true,
    resolved: isKind('resolved'),
    newEvent: (args) => isKind('event')(args) && isNew(args, SAME_EVENT_MS),
    event: isKind('event'),
    newReceivers: (args) => newReceivers(args).length > 0,
    resolvedWithReceivers: (args) => isKind('resolved')(args) && args.context.informed.length > 0,
  },
  actions: {
    'alerts.notify': effect<{ to: readonly string[]; notice: Notice }>(),
    begin: assign(begin),
    advance: assign(advance),
    repeat: assign(repeat),
    reroute: assign(reroute),
    rerouteSilently: assign(rerouteSilently),
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
    since: 0,
    at: 0,
    causes: [],
    count: 0,
  },
  initial: 'quiet',
  on: { RAISED: { guard: 'duplicate' } },
  states: {
    quiet: {
      on: {
        RAISED: [
          { guard: 'duplicate' },
          { guard: 'resolved', actions: 'end' },
          { guard: 'newEvent', actions: ['begin', notify('event')] },
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
