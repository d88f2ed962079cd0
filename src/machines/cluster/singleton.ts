import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import type { OperatorsAct } from './host.ts';

/** What does the work on a host. */
export interface Software {
  /** Version of Holdfast. */
  readonly release: string;
  /** Versions of the machines, by type of actor. */
  readonly machines: Readonly<Record<string, number>>;
}

/** That the work of one host went on at another, from there or from a host before it. */
export interface Takeover {
  readonly host: string;
  /** The last record of that host that counts, and its hash. */
  readonly seq: number;
  readonly hash: string;
  /** The host that took it over, and its token. */
  readonly by: string;
  readonly token: string;
}

/** Times are epoch milliseconds, durations milliseconds. */
export interface SingletonContext {
  readonly singleton: string;
  /** The host that holds it, as far as this one knows. */
  readonly holder?: string | undefined;
  readonly token?: string | undefined;
  /** What this host takes it with. */
  readonly software?: Software | undefined;
  /** The token by which its work began here last. */
  readonly begunBy?: string | undefined;
  /** What it began with then; absent in logs of hosts that did not record it. */
  readonly begunWith?: Software | undefined;
  /** Since when this host holds it. */
  readonly since?: number | undefined;
  /** The host that it was taken over from, and the last of its records that counts. */
  readonly from?: string | undefined;
  readonly fencedAt?: number | undefined;
  /** The newest record of this host when it noted a takeover last. */
  readonly tookOverBy?: number | undefined;
  /** Takeovers that the host before may not know of, oldest first: its stream may have lost the fence. */
  readonly untold?: readonly Takeover[] | undefined;
  /** Why this host holds it no longer, or could not begin. */
  readonly reason?: string | undefined;
  /** Beginnings that failed in a row. */
  readonly failures: number;
  /** How long this host leaves it to others before it tries again, unless what kept it from beginning passes by itself. */
  readonly withholdMs: number;
  /** Records of this host that do not count, because another one had taken over: the newest branches, oldest first. */
  readonly branches: readonly OrphanedBranch[];
}

/** From the first to the last record of the branch, and how many of them are of the singleton. */
export interface OrphanedBranch {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

export type SingletonEvent =
  /** The runtime starts: whatever this host held before, it does not hold now. */
  | { readonly type: 'STARTED'; readonly at: number }
  | { readonly type: 'FOLLOWED'; readonly at: number; readonly holder: string }
  /** `from` is the host that held it last, unless that was this one. */
  | {
      readonly type: 'TAKING';
      readonly at: number;
      readonly token: string;
      readonly from?: string;
      readonly software?: Software;
    }
  /** The work has begun. `fencedAt` is the last record of the host before that counts. */
  | { readonly type: 'BEGUN'; readonly at: number; readonly host: string; readonly fencedAt?: number }
  /** The work of another host goes on here, also when its beginning was not completed. `by` is the newest record of this host then. */
  | {
      readonly type: 'TOOK_OVER';
      readonly at: number;
      readonly by: number;
      readonly takeovers: readonly Takeover[];
    }
  /**
   * The host that it was taken over from by this token has noted which of its records do not count: those after `seq`, which is absent
   * in logs of hosts that did not record it.
   */
  | {
      readonly type: 'TAKEOVER_NOTED';
      readonly at: number;
      readonly host: string;
      readonly token: string;
      readonly seq?: number;
    }
  /** `passes`: it was no fault of this host, and is no reason to leave the work to others for longer. */
  | {
      readonly type: 'BEGIN_FAILED';
      readonly at: number;
      readonly reason: string;
      readonly passes?: boolean;
    }
  | { readonly type: 'ENDING'; readonly at: number; readonly reason: string }
  | { readonly type: 'ENDED'; readonly at: number }
  /** An operator moves it: to any other host where none is named. */
  | ({
      readonly type: 'MOVE_REQUESTED';
      readonly at: number;
      readonly to?: string | undefined;
    } & OperatorsAct)
  /** An operator wrote an orphaned branch of this host to a file, so it counts as seen. */
  | ({ readonly type: 'BRANCH_EXPORTED'; readonly at: number; readonly number: number } & OperatorsAct)
  /** `by` had taken it over; the records of these types of actors in the log of `host`, this one, do not count. */
  | ({
      readonly type: 'ORPHANED';
      readonly at: number;
      readonly host?: string;
      readonly by?: string;
      readonly types?: readonly string[];
    } & OrphanedBranch);

interface Args {
  readonly context: SingletonContext;
  readonly event: SingletonEvent;
}

const FIRST_WAIT_MS = 10_000;
const LONGEST_WAIT_MS = 600_000;
/** Two hosts may each fail while something that both need comes up. */
const FAILURES_TO_RAISE = 3;
const MOST_BRANCHES = 20;
const MOST_UNTOLD = 20;

const failing = ({ context: { singleton, failures }, event }: Args): Alert => ({
  name: 'cluster.singleton_failed',
  severity: 'critical',
  text: `${singleton} could not begin on this host ${failures + 1} times in a row: ${
    event.type === 'BEGIN_FAILED' ? event.reason.replace(/\.$/, '') : 'unknown'
  }.`,
  labels: { singleton, state: 'firing' },
});

const begun = ({ context: { singleton }, event }: Args): Alert => ({
  name: 'cluster.singleton_failed',
  severity: 'info',
  text: `${singleton} runs ${event.type === 'FOLLOWED' ? `on ${event.holder}` : 'here'} again.`,
  labels: { singleton, state: 'resolved' },
});

const orphaned = ({ context: { singleton }, event }: Args): Alert => {
  const { host, by, from, to, count } =
    event.type === 'ORPHANED' ? event : { host: undefined, by: undefined, from: 0, to: 0, count: 0 };
  const records = `${count} records of ${singleton} between ${from} and ${to} of`;
  return {
    name: 'cluster.orphaned_branch',
    severity: 'warning',
    text:
      host === undefined
        ? `${records} this host's log do not count: another host had taken over.`
        : `${records} the log of ${host} do not count: ${by ?? 'another host'} had taken over. On ${host}, see them with \`holdfast cluster orphans\`; \`holdfast cluster orphans export\` ends the warning of its health.`,
    labels: { singleton, from: String(from), to: String(to), ...(host !== undefined && { host }) },
  };
};

const isOf = (one: Takeover, { host, token }: { readonly host: string; readonly token: string }): boolean =>
  one.host === host && one.token === token;

/** The takeovers of which the hosts before may not know, after an event. */
export function untoldAfter(
  untold: readonly Takeover[] | undefined,
  event: Extract<SingletonEvent, { readonly type: 'TOOK_OVER' | 'TAKEOVER_NOTED' }>,
): readonly Takeover[] | undefined {
  if (event.type === 'TAKEOVER_NOTED') return untold?.filter((one) => !isOf(one, event));
  const others = (untold ?? []).filter((one) => !event.takeovers.some((other) => isOf(one, other)));
  return [...others, ...event.takeovers].slice(-MOST_UNTOLD);
}

const raise = (params: (args: Args) => Alert) => ({ type: 'alerts.raise', params }) as const;

/**
 * What this host does with work that runs on one host at a time (C13): whether it follows, takes over, holds or ends, by which
 * token and from whom. It decides how long a host that cannot begin leaves the work to others.
 */
export const singleton = setup({
  types: {
    context: {} as SingletonContext,
    events: {} as SingletonEvent,
    input: {} as { readonly singleton: string } | undefined,
  },
  guards: {
    isRaised: ({ context }) => context.failures >= FAILURES_TO_RAISE,
    isLastStraw: ({ context }) => context.failures + 1 === FAILURES_TO_RAISE,
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    leave: assign({ token: undefined, since: undefined, holder: undefined }),
    note: assign({}),
    follow: assign(({ event }) => (event.type === 'FOLLOWED' ? { holder: event.holder } : {})),
    recover: assign({ failures: 0, withholdMs: 0, reason: undefined }),
    take: assign(({ event }) =>
      event.type === 'TAKING'
        ? { token: event.token, software: event.software, from: event.from, fencedAt: undefined }
        : {},
    ),
    hold: assign(({ context: { token, software }, event }) =>
      event.type === 'BEGUN'
        ? {
            ...{ holder: event.host, since: event.at, fencedAt: event.fencedAt },
            ...{ begunBy: token, begunWith: software },
          }
        : {},
    ),
    explain: assign(({ event }) =>
      event.type === 'ENDING' || event.type === 'BEGIN_FAILED' ? { reason: event.reason } : {},
    ),
    fail: assign(({ context: { failures, withholdMs }, event }) => ({
      failures: failures + 1,
      withholdMs:
        event.type === 'BEGIN_FAILED' && event.passes
          ? withholdMs
          : Math.min(LONGEST_WAIT_MS, Math.max(FIRST_WAIT_MS, 2 * withholdMs)),
    })),
    noteTakeover: assign(({ context: { untold }, event }) => {
      if (event.type === 'TOOK_OVER') return { tookOverBy: event.by, untold: untoldAfter(untold, event) };
      return event.type === 'TAKEOVER_NOTED' ? { untold: untoldAfter(untold, event) } : {};
    }),
    branch: assign(({ context, event }) => {
      if (event.type !== 'ORPHANED') return {};
      const { from, to, count } = event;
      return { branches: [...context.branches, { from, to, count }].slice(-MOST_BRANCHES) };
    }),
  },
}).createMachine({
  id: 'cluster-singleton',
  context: ({ input }) => ({ singleton: input?.singleton ?? '', failures: 0, withholdMs: 0, branches: [] }),
  initial: 'following',
  on: {
    STARTED: { target: '.following', actions: 'leave' },
    ORPHANED: { actions: ['branch', raise(orphaned)] },
    TAKING: { target: '.taking', actions: 'take' },
    TOOK_OVER: { actions: 'noteTakeover' },
    TAKEOVER_NOTED: { actions: 'noteTakeover' },
    // What an operator did is recorded, and changes nothing here.
    MOVE_REQUESTED: { actions: 'note' },
    BRANCH_EXPORTED: { actions: 'note' },
  },
  states: {
    following: {
      on: {
        FOLLOWED: [
          { guard: 'isRaised', actions: [raise(begun), 'follow', 'recover'] },
          { actions: ['follow', 'recover'] },
        ],
      },
    },
    taking: {
      on: {
        BEGUN: [
          { guard: 'isRaised', target: 'holding', actions: [raise(begun), 'hold', 'recover'] },
          { target: 'holding', actions: ['hold', 'recover'] },
        ],
        BEGIN_FAILED: [
          {
            guard: 'isLastStraw',
            target: 'following',
            actions: [raise(failing), 'fail', 'explain', 'leave'],
          },
          { target: 'following', actions: ['fail', 'explain', 'leave'] },
        ],
        ENDING: { target: 'ending', actions: 'explain' },
      },
    },
    holding: { on: { ENDING: { target: 'ending', actions: 'explain' } } },
    ending: { on: { ENDED: { target: 'following', actions: 'leave' } } },
  },
});
