import { assign, setup } from 'xstate';

/** One life of the process. */
export interface Run {
  readonly pid: number;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly version: string;
  /** Which start of the machine it ran in; absent where no system says so. */
  readonly boot?: string;
  /** When that was, epoch milliseconds: by the wall clock without any jump that was recorded before. */
  readonly bootedAt?: number;
}

/** A run that is over; the time is missing when it was killed. */
export interface EndedRun extends Run {
  /** `killed`, or the reason of its stop, e.g. `SIGTERM`. */
  readonly reason: string;
  /** Epoch milliseconds. */
  readonly stoppedAt?: number;
}

/** The newest saved states of the actors: the digest chains them to the log. */
export interface Checkpoint {
  readonly seq: number;
  readonly digest: string;
  readonly count: number;
}

export interface LifecycleContext {
  /** How often it was started on this data folder. */
  readonly runs: number;
  readonly current?: Run;
  /** How the run before ended. */
  readonly last?: EndedRun;
  /** How the current run ends, once it is being stopped. */
  readonly ending?: { readonly reason: string; readonly stoppedAt?: number };
  readonly checkpoint?: Checkpoint;
}

export type LifecycleEvent =
  | ({ type: 'BOOTED' } & Run)
  | { type: 'STOPPING'; reason: string; stoppedAt?: number }
  | ({ type: 'CHECKPOINT' } & Checkpoint)
  /** The log was repaired while nothing ran; its record says what is missing. */
  | { type: 'REPAIRED' };

/**
 * The runs of the runtime on a data folder (R29). A run that has not recorded its stop when the next one begins was
 * killed.
 */
export const lifecycle = setup({
  types: {} as { context: LifecycleContext; events: LifecycleEvent },
  actions: {
    begin: assign(({ context, event }) => {
      if (event.type !== 'BOOTED') return {};
      const { current, ending } = context;
      const { pid, startedAt, version, boot, bootedAt } = event;
      return {
        runs: context.runs + 1,
        current: {
          pid,
          startedAt,
          version,
          ...(boot !== undefined && bootedAt !== undefined && { boot, bootedAt }),
        },
        ending: undefined,
        ...(current && { last: { ...current, ...(ending ?? { reason: 'killed' }) } }),
      };
    }),
    end: assign(({ event }) => {
      if (event.type !== 'STOPPING') return {};
      const { reason, stoppedAt } = event;
      return { ending: { reason, ...(stoppedAt !== undefined && { stoppedAt }) } };
    }),
    acknowledge: assign({}),
    remember: assign(({ event }) => {
      if (event.type !== 'CHECKPOINT') return {};
      return { checkpoint: { seq: event.seq, digest: event.digest, count: event.count } };
    }),
  },
}).createMachine({
  id: 'lifecycle',
  context: { runs: 0 },
  initial: 'new',
  on: {
    BOOTED: { target: '.running', actions: 'begin' },
    CHECKPOINT: { actions: 'remember' },
    REPAIRED: { actions: 'acknowledge' },
  },
  states: {
    new: {},
    running: { on: { STOPPING: { target: 'stopped', actions: 'end' } } },
    stopped: {},
  },
});
