import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** Times in milliseconds; the documents' own where one is left out. */
export interface DhcpServiceInput {
  /** From the last rewrite of a burst to the restart. */
  readonly quietMs?: number;
  /** From the first rewrite of a burst to the restart at the latest: a burst without end must not put it off for ever. */
  readonly longestMs?: number;
  /** Time until a failed restart is repeated. */
  readonly retryMs?: number;
}

export interface DhcpServiceContext extends Required<DhcpServiceInput> {
  /** Legs whose file was rewritten and that the service has not read yet. */
  readonly waiting: readonly string[];
  /** Legs for which it is being restarted. */
  readonly serving: readonly string[];
  readonly restarts: number;
  readonly failures: number;
  /** What the service read at its last restart, and when. */
  readonly last?: {
    readonly at: number;
    readonly files: readonly string[];
    readonly adopted: readonly string[];
  };
}

export type DhcpServiceEvent =
  | { readonly type: 'REWRITTEN'; readonly legs: readonly string[]; readonly ncid?: string }
  /** `adopted`: files of the directory that are not generated, but staged by hand. */
  | {
      readonly type: 'RESTARTED';
      readonly at: number;
      readonly files: readonly string[];
      readonly adopted: readonly string[];
    }
  | { readonly type: 'effect.failed'; readonly effect: string; readonly message: string }
  | { readonly type: 'effect.lost'; readonly effect: string };

/** Effect `router.restart_dhcp`. */
export interface RestartParams {
  readonly legs: readonly string[];
}

type Args = { readonly context: DhcpServiceContext; readonly event: DhcpServiceEvent };

const QUIET_MS = 22_000;
const LONGEST_MS = 120_000;
const RETRY_MS = 10_000;

const union = (some: readonly string[], more: readonly string[]): string[] => [
  ...new Set([...some, ...more]),
];
const restartFailed = ({ context, event }: Args): Alert => ({
  name: 'router.dhcp_restart_failed',
  severity: 'warning',
  text: 'The DHCP service could not be restarted after its files were rewritten. The restart is tried again.',
  labels: {
    legs: context.serving.join(','),
    reason: event.type === 'effect.failed' ? event.message : 'it was interrupted',
  },
});

/**
 * Decides when the DHCP service is restarted (R23): some 22 s after the last rewrite of a leg's file, once a burst. The
 * restart makes it read its whole directory, files staged there by hand included.
 */
export const dhcpService = setup({
  types: {
    context: {} as DhcpServiceContext,
    events: {} as DhcpServiceEvent,
    input: {} as DhcpServiceInput | undefined,
  },
  actions: {
    'router.restart_dhcp': effect<RestartParams>(),
    'alerts.raise': effect<Alert>(),
    note: assign({
      waiting: ({ context, event }) =>
        event.type === 'REWRITTEN' ? union(context.waiting, event.legs) : context.waiting,
    }),
    take: assign({
      serving: ({ context }) => union(context.serving, context.waiting),
      waiting: [],
    }),
    done: assign(({ context, event }) => {
      if (event.type !== 'RESTARTED') return {};
      const { at, files, adopted } = event;
      return { serving: [], restarts: context.restarts + 1, last: { at, files, adopted } };
    }),
    fail: assign({ failures: ({ context }) => context.failures + 1 }),
  },
  guards: {
    rewritten: ({ context }) => context.waiting.length > 0,
    // Outcomes of other effects arrive here too.
    ofRestart: ({ event }) => 'effect' in event && event.effect === 'router.restart_dhcp',
  },
  delays: {
    quiet: ({ context }) => context.quietMs,
    longest: ({ context }) => context.longestMs,
    retry: ({ context }) => context.retryMs,
  },
}).createMachine({
  id: 'router-dhcp',
  context: ({ input }) => ({
    quietMs: input?.quietMs ?? QUIET_MS,
    longestMs: input?.longestMs ?? LONGEST_MS,
    retryMs: input?.retryMs ?? RETRY_MS,
    waiting: [],
    serving: [],
    restarts: 0,
    failures: 0,
  }),
  initial: 'idle',
  states: {
    idle: { on: { REWRITTEN: { target: 'waiting', actions: 'note' } } },
    waiting: {
      after: { longest: 'restarting' },
      initial: 'quiet',
      states: {
        quiet: {
          after: { quiet: '#router-dhcp.restarting' },
          on: { REWRITTEN: { target: 'quiet', reenter: true, actions: 'note' } },
        },
      },
    },
    restarting: {
      entry: [
        {
          type: 'router.restart_dhcp',
          params: ({ context }) => ({ legs: union(context.serving, context.waiting) }),
        },
        'take',
      ],
      on: {
        REWRITTEN: { actions: 'note' },
        RESTARTED: [
          { guard: 'rewritten', target: 'waiting', actions: 'done' },
          { target: 'idle', actions: 'done' },
        ],
        'effect.failed': { guard: 'ofRestart', target: 'failed' },
        'effect.lost': { guard: 'ofRestart', target: 'failed' },
      },
    },
    failed: {
      entry: ['fail', { type: 'alerts.raise', params: restartFailed }],
      after: { retry: 'restarting' },
      on: { REWRITTEN: { actions: 'note' } },
    },
  },
});
