import { assign, setup } from 'xstate';

/** Where a probe's span ended. */
export type ProbeEnd =
  /** It was found in the database. */
  | 'arrived'
  /** There is no key to send. */
  | 'no_key'
  /** Nobody answered at the endpoint. */
  | 'unreachable'
  /** The receiver refused it. */
  | 'refused'
  /** Accepted, but not found in the database in time. */
  | 'lost'
  /** Accepted, but the database can't be queried. */
  | 'database_away';

export interface Probed {
  readonly type: 'PROBED';
  readonly at: number;
  readonly end: ProbeEnd;
  readonly endpoint: string;
  readonly service: string;
  /** From sending to being found, milliseconds. */
  readonly arrivedMs?: number;
}

export interface ProbeContext {
  readonly probes: number;
  readonly end?: ProbeEnd | undefined;
  readonly at?: number | undefined;
  readonly arrivedMs?: number | undefined;
  /** When a span last arrived, epoch milliseconds: what proves that the pipeline is wired (O27). */
  readonly arrivedAt?: number | undefined;
}

/**
 * Remembers how the newest end-to-end probe of trace ingest ended, and when one last arrived (O1, O27). It is a reducer: its
 * states only name that end in the log.
 */
export const probe = setup({
  types: { context: {} as ProbeContext, events: {} as Probed },
  guards: { arrived: ({ event }) => event.end === 'arrived' },
  actions: {
    note: assign(({ context, event: { at, end, arrivedMs } }) => ({
      ...{ probes: context.probes + 1, at, end, arrivedMs },
      arrivedAt: end === 'arrived' ? at : context.arrivedAt,
    })),
  },
}).createMachine({
  id: 'collector-probe',
  context: { probes: 0 },
  initial: 'unknown',
  on: {
    PROBED: [
      { guard: 'arrived', target: '.wired', actions: 'note' },
      { target: '.broken', actions: 'note' },
    ],
  },
  states: { unknown: {}, wired: {}, broken: {} },
});
