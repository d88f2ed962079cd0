import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

export interface TelemetryIntakeContext {
  /** Where the rows go, without credentials. */
  readonly place?: string;
  /** Why the database is away; absent while it is there. */
  readonly away?: string | undefined;
  /** Since when, ms since the epoch. */
  readonly awaySince?: number | undefined;
  /** Why nothing is taken; absent while something is. */
  readonly shut?: string | undefined;
  /** Requests that were refused in the last press. */
  readonly refused: number;
}

export type TelemetryIntakeEvent =
  | { readonly type: 'DATABASE_THERE'; readonly place: string }
  | {
      readonly type: 'DATABASE_AWAY';
      readonly place: string;
      readonly reason: string;
      readonly since: number;
    }
  /** Requests are refused because more is being received than memory is set aside for. */
  | { readonly type: 'PRESSED' }
  /** No request was refused for that for a while. */
  | { readonly type: 'RELIEVED'; readonly refused: number }
  /** Nothing can be kept any more: the spool is full, or its disk fails. */
  | { readonly type: 'SPOOL_STUCK'; readonly reason: string }
  | { readonly type: 'SPOOL_FREE' };

const stuck = ({ event }: { event: TelemetryIntakeEvent }): Alert => ({
  name: 'otlp.refusing',
  severity: 'critical',
  text: 'Telemetry is refused: what is received can be neither inserted nor kept.',
  labels: { state: 'firing', ...(event.type === 'SPOOL_STUCK' && { reason: event.reason }) },
});

const free = (): Alert => ({
  name: 'otlp.refusing',
  severity: 'info',
  text: 'Telemetry is taken again.',
  labels: { state: 'resolved' },
});

const away = ({ context }: { context: TelemetryIntakeContext }): Alert => ({
  name: 'otlp.database_away',
  severity: 'warning',
  text: 'Telemetry is kept on disk: the columnar database takes nothing.',
  labels: { state: 'firing', place: context.place ?? '', reason: context.away ?? '' },
});

const back = ({ context }: { context: TelemetryIntakeContext }): Alert => ({
  name: 'otlp.database_away',
  severity: 'info',
  text: 'The columnar database takes telemetry again.',
  labels: { state: 'resolved', place: context.place ?? '' },
});

/**
 * The receiver of telemetry: whether it takes requests, and whether what it takes gets into the database. Requests
 * are no events of it; the log has what changes for all of them, when, and why.
 */
export const telemetryIntake = setup({
  types: {} as { context: TelemetryIntakeContext; events: TelemetryIntakeEvent },
  delays: { patience: 60_000 },
  actions: {
    'alert.raise': effect<Alert>(),
    find: assign(({ event }) =>
      event.type === 'DATABASE_THERE' ? { place: event.place, away: undefined, awaySince: undefined } : {},
    ),
    lose: assign(({ event }) =>
      event.type === 'DATABASE_AWAY'
        ? { place: event.place, away: event.reason, awaySince: event.since }
        : {},
    ),
    again: assign(({ event }) => (event.type === 'DATABASE_AWAY' ? { away: event.reason } : {})),
    shut: assign(({ event }) => (event.type === 'SPOOL_STUCK' ? { shut: event.reason } : {})),
    open: assign({ shut: undefined }),
    count: assign(({ event }) => (event.type === 'RELIEVED' ? { refused: event.refused } : {})),
    forget: assign({ refused: 0 }),
  },
}).createMachine({
  id: 'otlp-intake',
  context: { refused: 0 },
  type: 'parallel',
  states: {
    door: {
      initial: 'open',
      on: {
        SPOOL_STUCK: { target: '.shut', actions: ['shut', { type: 'alert.raise', params: stuck }] },
      },
      states: {
        open: { on: { PRESSED: { target: 'pressed', actions: 'forget' } } },
        /** What there is no memory for is refused, everything else is taken. */
        pressed: { on: { RELIEVED: { target: 'open', actions: 'count' } } },
        /** Everything is refused before it is read. */
        shut: {
          on: {
            SPOOL_FREE: { target: 'open', actions: ['open', { type: 'alert.raise', params: free }] },
            SPOOL_STUCK: { actions: 'shut' },
          },
        },
      },
    },
    database: {
      initial: 'unknown',
      on: { DATABASE_AWAY: { target: '.away', actions: 'lose' } },
      states: {
        unknown: { on: { DATABASE_THERE: { target: 'there', actions: 'find' } } },
        there: { on: { DATABASE_THERE: { actions: 'find' } } },
        away: {
          after: {
            patience: {
              target: 'missed',
              actions: { type: 'alert.raise', params: away },
            },
          },
          on: {
            DATABASE_AWAY: { actions: 'again' },
            DATABASE_THERE: { target: 'there', actions: 'find' },
          },
        },
        /** Away for so long that a person was told. */
        missed: {
          on: {
            DATABASE_AWAY: { actions: 'again' },
            DATABASE_THERE: {
              target: 'there',
              actions: ['find', { type: 'alert.raise', params: back }],
            },
          },
        },
      },
    },
  },
});
