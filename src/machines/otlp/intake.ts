import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

export interface IntakeContext {
  /** The database, without credentials. */
  readonly place?: string;
  /** Why the database takes no rows; absent while it does. */
  readonly unavailable?: string | undefined;
  /** Since when, epoch milliseconds. */
  readonly unavailableSince?: number | undefined;
  /** Why every request is refused; absent while requests are taken. */
  readonly blocked?: string | undefined;
  /** Requests that were refused in the last overload. */
  readonly refused: number;
}

export type IntakeEvent =
  | { readonly type: 'DATABASE_AVAILABLE'; readonly place: string }
  | {
      readonly type: 'DATABASE_UNAVAILABLE';
      readonly place: string;
      readonly reason: string;
      readonly since: number;
    }
  /** Requests are refused because more is received than the memory for bodies can hold. */
  | { readonly type: 'OVERLOADED' }
  /** No request was refused for that reason for some seconds. */
  | { readonly type: 'RELIEVED'; readonly refused: number }
  /** Nothing can be written to the spool: it is full, or its disk fails. */
  | { readonly type: 'SPOOL_BLOCKED'; readonly reason: string }
  | { readonly type: 'SPOOL_WRITABLE' };

interface Args {
  readonly context: IntakeContext;
  readonly event: IntakeEvent;
}

const refusing = ({ event }: Args): Alert => ({
  name: 'otlp.refusing',
  severity: 'critical',
  text: 'Telemetry is refused: it can be neither inserted into the database nor kept on disk.',
  labels: { state: 'firing', ...(event.type === 'SPOOL_BLOCKED' && { reason: event.reason }) },
});

const takingAgain = (): Alert => ({
  name: 'otlp.refusing',
  severity: 'info',
  text: 'Telemetry is taken again.',
  labels: { state: 'resolved' },
});

const databaseUnavailable = ({ context }: Args): Alert => ({
  name: 'otlp.database_unavailable',
  severity: 'warning',
  text: 'Telemetry is kept on disk, because the columnar database takes no rows.',
  labels: { state: 'firing', place: context.place ?? '', reason: context.unavailable ?? '' },
});

const databaseAvailable = ({ context }: Args): Alert => ({
  name: 'otlp.database_unavailable',
  severity: 'info',
  text: 'The columnar database takes telemetry again.',
  labels: { state: 'resolved', place: context.place ?? '' },
});

/**
 * The receiver of telemetry: whether it takes requests, and whether the database takes their rows. Single requests are no
 * events of this machine; the log shows when and why all of them were refused or delayed.
 */
export const intake = setup({
  types: {} as { context: IntakeContext; events: IntakeEvent },
  delays: { patience: 60_000 },
  actions: {
    'alerts.raise': effect<Alert>(),
    noteDatabase: assign(({ event }) => {
      if (event.type === 'DATABASE_AVAILABLE')
        return { place: event.place, unavailable: undefined, unavailableSince: undefined };
      if (event.type === 'DATABASE_UNAVAILABLE')
        return { place: event.place, unavailable: event.reason, unavailableSince: event.since };
      return {};
    }),
    noteReason: assign(({ event }) =>
      event.type === 'DATABASE_UNAVAILABLE' ? { unavailable: event.reason } : {},
    ),
    block: assign(({ event }) => (event.type === 'SPOOL_BLOCKED' ? { blocked: event.reason } : {})),
    unblock: assign({ blocked: undefined }),
    count: assign(({ event }) => (event.type === 'RELIEVED' ? { refused: event.refused } : {})),
    resetCount: assign({ refused: 0 }),
  },
}).createMachine({
  id: 'otlp-intake',
  context: { refused: 0 },
  type: 'parallel',
  states: {
    requests: {
      initial: 'taken',
      on: {
        SPOOL_BLOCKED: { target: '.refused', actions: ['block', { type: 'alerts.raise', params: refusing }] },
      },
      states: {
        taken: { on: { OVERLOADED: { target: 'limited', actions: 'resetCount' } } },
        /** Requests for which there is no memory are refused, the others are taken. */
        limited: { on: { RELIEVED: { target: 'taken', actions: 'count' } } },
        /** Every request is refused before its body is read. */
        refused: {
          on: {
            SPOOL_WRITABLE: {
              target: 'taken',
              actions: ['unblock', { type: 'alerts.raise', params: takingAgain }],
            },
            SPOOL_BLOCKED: { actions: 'block' },
          },
        },
      },
    },
    database: {
      initial: 'unknown',
      on: { DATABASE_UNAVAILABLE: { target: '.unavailable', actions: 'noteDatabase' } },
      states: {
        unknown: { on: { DATABASE_AVAILABLE: { target: 'available', actions: 'noteDatabase' } } },
        available: { on: { DATABASE_AVAILABLE: { actions: 'noteDatabase' } } },
        unavailable: {
          after: {
            patience: { target: 'reported', actions: { type: 'alerts.raise', params: databaseUnavailable } },
          },
          on: {
            DATABASE_UNAVAILABLE: { actions: 'noteReason' },
            DATABASE_AVAILABLE: { target: 'available', actions: 'noteDatabase' },
          },
        },
        /** Unavailable for so long that an alert was raised. */
        reported: {
          on: {
            DATABASE_UNAVAILABLE: { actions: 'noteReason' },
            DATABASE_AVAILABLE: {
              target: 'available',
              actions: ['noteDatabase', { type: 'alerts.raise', params: databaseAvailable }],
            },
          },
        },
      },
    },
  },
});
