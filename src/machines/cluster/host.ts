import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** Times are epoch milliseconds, durations milliseconds. */
export interface HostContext {
  readonly host: string;
  readonly version?: string | undefined;
  /** When it was heard first after a silence, or lost. */
  readonly since?: number | undefined;
  /** Of its stream. */
  readonly incarnation?: string | undefined;
}

/** Who did something by hand, and why, where that was given. */
export interface OperatorsAct {
  readonly by: string;
  readonly reason?: string | undefined;
}

export interface MirrorLag {
  /** Records that are not on the stream yet. */
  readonly records: number;
  /** How long the oldest of them has waited. */
  readonly ms: number;
}

export type HostEvent =
  | { readonly type: 'HEARD'; readonly at: number; readonly version: string }
  /** Nothing was heard of it for `silentMs`. */
  | { readonly type: 'LOST'; readonly at: number; readonly silentMs: number }
  /** It said that it stops. */
  | { readonly type: 'LEFT'; readonly at: number }
  /** An operator does not expect it any more. */
  | ({ readonly type: 'FORGOTTEN'; readonly at: number } & OperatorsAct)
  /** An operator gave away what this host held; it takes nothing until that is undone. */
  | ({ readonly type: 'DRAINED' | 'UNDRAINED'; readonly at: number } & OperatorsAct)
  /** An operator had a new machine go on as this host, from its log on the stream. */
  | ({ readonly type: 'ADOPTED'; readonly at: number; readonly records: number } & OperatorsAct)
  /** Hosts of these two versions cannot hold work side by side. */
  | {
      readonly type: 'VERSION_REFUSED';
      readonly at: number;
      readonly version: string;
      readonly ownVersion: string;
    }
  | { readonly type: 'STREAM_REPLACED'; readonly at: number; readonly to: string; readonly reason: string }
  | ({ readonly type: 'MIRROR_BEHIND'; readonly at: number } & MirrorLag)
  | { readonly type: 'MIRROR_CAUGHT_UP'; readonly at: number }
  /** This host itself has proved for `silentMs` no connection to a quorum; or, where it is behind, has not read what the others said. */
  | {
      readonly type: 'ISOLATED';
      readonly at: number;
      readonly silentMs: number;
      readonly isBehind?: boolean | undefined;
    }
  | { readonly type: 'CONNECTED'; readonly at: number };

interface Args {
  readonly context: HostContext;
  readonly event: HostEvent;
}

const MOST_BEHIND: MirrorLag = { records: 10_000, ms: 60_000 };

/** Whether so much waits for the stream that a person should know. */
export function isMirrorBehind({ records, ms }: MirrorLag): boolean {
  return records > MOST_BEHIND.records || ms > MOST_BEHIND.ms;
}

const seconds = (ms: number): string => `${Math.round(ms / 1_000)} s`;

/** An alert of a condition that lasts. */
function lasting(
  name: string,
  severity: Alert['severity'],
  text: (host: string, event: HostEvent) => string,
) {
  const params = ({ context: { host }, event }: Args): Alert => ({
    name: `cluster.${name}`,
    severity,
    text: text(host, event),
    labels: { host, state: severity === 'info' ? 'resolved' : 'firing' },
  });
  return { type: 'alerts.raise', params } as const;
}

const lost = lasting(
  'host_lost',
  'warning',
  (host, event) =>
    `Host ${host} has been silent for ${seconds(event.type === 'LOST' ? event.silentMs : 0)}; others take over what it held.`,
);
const found = lasting('host_lost', 'info', (host, event) =>
  event.type === 'FORGOTTEN' ? `Host ${host} is not expected any more.` : `Host ${host} is heard again.`,
);
const behind = lasting('mirror_behind', 'warning', (host, event) => {
  const { records, ms } = event.type === 'MIRROR_BEHIND' ? event : { records: 0, ms: 0 };
  return `${records} records of host ${host} are not on its stream yet, the oldest for ${seconds(ms)}: a host that takes over waits for them.`;
});
const caughtUp = lasting('mirror_behind', 'info', (host) => `The stream of host ${host} has every record.`);
const isolated = lasting('host_isolated', 'critical', (host, event) => {
  const { silentMs, isBehind } = event.type === 'ISOLATED' ? event : { silentMs: 0 };
  return isBehind
    ? `Host ${host} has not read what the other hosts said in the last ${seconds(silentMs)}: its gateway refuses calls until it has.`
    : `Host ${host} has reached no quorum of the NATS servers for ${seconds(silentMs)}: it holds nothing any more.`;
});
const connected = lasting('host_isolated', 'info', (host) => `Host ${host} reaches the NATS servers again.`);

const replaced = ({ context: { host }, event }: Args): Alert => ({
  name: 'cluster.stream_replaced',
  severity: 'warning',
  text: `The stream of host ${host} was replaced and is filled again from its log: ${
    event.type === 'STREAM_REPLACED' ? event.reason.replace(/\.$/, '') : 'unknown'
  }.`,
  labels: { host },
});

const refused = ({ context: { host }, event }: Args): Alert => {
  const { version, ownVersion } = event.type === 'VERSION_REFUSED' ? event : { version: '', ownVersion: '' };
  return {
    name: 'cluster.version_refused',
    severity: 'warning',
    text: `Host ${host} runs version ${version}, this one ${ownVersion}: this host takes nothing over until one of them is updated.`,
    labels: { host, version, ownVersion },
  };
};

/**
 * A host of the cluster as this one sees it (C13): whether it is heard, how its log gets onto its stream, and of this host
 * itself whether it reaches the others. What a person has to know raises an alert.
 */
export const host = setup({
  types: {
    context: {} as HostContext,
    events: {} as HostEvent,
    input: {} as { readonly host: string } | undefined,
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    hear: assign(({ event }) =>
      event.type === 'HEARD' ? { version: event.version, since: event.at } : { since: event.at },
    ),
    note: assign({}),
    replace: assign(({ event }) => (event.type === 'STREAM_REPLACED' ? { incarnation: event.to } : {})),
  },
}).createMachine({
  id: 'cluster-host',
  context: ({ input }) => ({ host: input?.host ?? '' }),
  type: 'parallel',
  on: {
    STREAM_REPLACED: { actions: [{ type: 'alerts.raise', params: replaced }, 'replace'] },
    VERSION_REFUSED: { actions: { type: 'alerts.raise', params: refused } },
    // What an operator did is recorded, and changes nothing here.
    DRAINED: { actions: 'note' },
    UNDRAINED: { actions: 'note' },
    ADOPTED: { actions: 'note' },
  },
  states: {
    presence: {
      initial: 'unheard',
      on: { LEFT: { target: '.left', actions: 'hear' } },
      states: {
        unheard: { on: { HEARD: { target: 'heard', actions: 'hear' } } },
        heard: { on: { HEARD: { actions: 'hear' }, LOST: { target: 'lost', actions: [lost, 'hear'] } } },
        lost: {
          on: {
            HEARD: { target: 'heard', actions: [found, 'hear'] },
            FORGOTTEN: { target: 'unheard', actions: [found, 'hear'] },
          },
        },
        left: {
          on: { HEARD: { target: 'heard', actions: 'hear' }, FORGOTTEN: { target: 'unheard' } },
        },
      },
    },
    mirror: {
      initial: 'complete',
      states: {
        complete: { on: { MIRROR_BEHIND: { target: 'behind', actions: behind } } },
        behind: { on: { MIRROR_CAUGHT_UP: { target: 'complete', actions: caughtUp } } },
      },
    },
    link: {
      initial: 'connected',
      states: {
        connected: { on: { ISOLATED: { target: 'isolated', actions: isolated } } },
        isolated: { on: { CONNECTED: { target: 'connected', actions: connected } } },
      },
    },
  },
});
