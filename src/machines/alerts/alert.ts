import { assign, setup } from 'xstate';
import { effect } from '../effect.ts';
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
} from './escalation.ts';

/** What goes into and comes out of an alert and its outbox. Times are epoch milliseconds. */

/** A rung of the ladder: whom to tell, and how long after the one before, while nobody has acknowledged it. */
export interface Step {
  readonly to: readonly string[];
  readonly afterMs: number;
}

/** What is told to a receiver. */
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

export type Told = Omit<Notice, 'state' | 'since'>;

/** Somebody raised it, and these are the rungs that the configuration gives it. */
export interface Raised {
  readonly type: 'RAISED';
  readonly at: number;
  /** The record that raised it: asked for twice after a crash, it is heard once. */
  readonly cause: string;
  readonly kind: 'firing' | 'resolved' | 'event';
  /** Its source says it again on purpose. */
  readonly again?: boolean;
  readonly told: Told;
  readonly steps: readonly Step[];
  /** After the last rung, as long as nobody has acknowledged it. */
  readonly remindMs: number;
  /** It is to be silent until then. */
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
  /** The configuration gives it other rungs, as when a receiver has got its address. */
  | {
      readonly type: 'LADDER';
      readonly at: number;
      readonly steps: readonly Step[];
      readonly remindMs: number;
    }
  | { readonly type: 'SILENCE'; readonly at: number; readonly until: number }
  | { readonly type: 'UNSILENCE'; readonly at: number };

export interface AlertContext {
  readonly told?: Told | undefined;
  readonly steps: readonly Step[];
  readonly remindMs: number;
  /** Rungs climbed. */
  readonly climbed: number;
  /** Receivers that know of it, to be told when it is over. */
  readonly informed: readonly string[];
  readonly since: number;
  /** The time of the newest event that set a delay. */
  readonly at: number;
  /** Of the newest raises. */
  readonly causes: readonly string[];
  /** Raises since it began, or since it was last told. */
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
  /** Of the effect that asked for it: queued twice after a crash, it is sent once. */
  readonly id: string;
  readonly at: number;
  readonly notice: Notice;
}

/** A one-time event that comes again within this time is counted and not told again. */
export const SAME_EVENT_MS = 3_600_000;

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
