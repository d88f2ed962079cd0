import type { ClusterStanding } from '../../../core/contracts/cluster.ts';
import type { Clock } from '../../../core/kernel/clock.ts';

/** The operations on the control socket. */
export const PATHS = {
  view: '/cluster/view',
  move: '/cluster/move',
  drain: '/cluster/drain',
  forget: '/cluster/forget',
  exported: '/cluster/orphans/exported',
} as const;

/** What commands, health and console read of a running host: parts of what the plugin has started. */
export interface ClusterParts {
  /** Name of the cluster. */
  readonly name: string;
  readonly host: string;
  readonly version: string;
  readonly clock: Clock;
  readonly link: {
    readonly isUp: boolean;
    readonly problem: string | undefined;
    /** The servers, without secrets. */
    readonly shown: string;
    readonly serverVersion: string | undefined;
    readonly forged: number;
  };
  readonly beats: {
    standing(): ClusterStanding;
    readonly heard: ReadonlyMap<string, HeardOf>;
  };
  readonly leases: {
    table(): readonly LeaseOf[];
    hosts(): ReadonlyMap<string, { readonly drained: boolean }>;
    readonly isDrained: boolean;
    /** A host of another version keeps this one from claiming anything. */
    readonly refusal: { readonly host?: string } | undefined;
    release(singleton: string, reason: string, to?: string, withholdMs?: number): Promise<void>;
    drain(reason?: string): Promise<void>;
    undrain(): void;
  };
  readonly outbox: {
    readonly position: { readonly incarnation: number; readonly seq: number };
    readonly trouble: Error | undefined;
    lag(): LagView;
    orphans(): readonly Orphan[];
  };
  /** Since when a host has held a singleton, where that is known; epoch milliseconds. */
  heldSince(singleton: string, holder: string): number | undefined;
}

interface HeardOf {
  readonly run: string;
  readonly version: string;
  /** When its newest beat came, by the clock of durations. */
  readonly heardMs: number;
  /** Records that are not on its stream. */
  readonly lag: number;
}

interface LeaseOf {
  readonly singleton: string;
  readonly holder?: { readonly host: string; readonly token: string };
  readonly last?: { readonly host: string };
  readonly leftMs?: number;
}

/** What of the local log is not on the stream. */
export interface LagView {
  readonly records: number;
  readonly bytes: number;
  readonly ms: number;
}

interface Orphan {
  readonly singleton: string;
  readonly token: string;
  readonly by: string;
  readonly after: number;
  readonly to?: number | undefined;
  readonly records?: number | undefined;
  readonly exportedAt?: number | undefined;
}

/** Heard for less: a host is there; silent for longer, and it is not counted. */
const SILENT_MS = 2_000;
const GONE_MS = 10_000;
/** A stream that is so far behind loses that much when the machine is lost now. */
const LAGGING_MS = 10_000;

export interface HostView {
  readonly host: string;
  readonly isThis: boolean;
  readonly state: 'here' | 'there' | 'isolated' | 'silent' | 'gone';
  /** Since its newest beat, milliseconds. */
  readonly heardMs: number;
  readonly version: string;
  readonly drained: boolean;
  readonly holds: readonly string[];
  /** Records that are not on its stream. */
  readonly lag: number;
}

export interface LeaseView {
  readonly singleton: string;
  /** Absent while nobody holds it. */
  readonly holder?: string;
  readonly token?: string;
  readonly since?: number;
  /** How long this host may act without another renewal. */
  readonly leftMs?: number;
  /** Who held it before. */
  readonly last?: string;
}

/** Records that this host made in the name of a singleton that another had taken over. */
export interface OrphanView {
  /** From 1, in the order in which they were found. */
  readonly number: number;
  readonly singleton: string;
  /** The host that had taken it over, and its token. */
  readonly by: string;
  readonly token: string;
  /** The last record that counts, and the last of the branch. */
  readonly after: number;
  readonly to: number;
  readonly records: number;
  readonly exportedAt?: number;
}

/** The cluster as one of its hosts sees it. */
export interface ClusterView {
  readonly name: string;
  readonly host: string;
  readonly version: string;
  readonly nats: { readonly servers: string; readonly version?: string; readonly problem?: string };
  readonly isIsolated: boolean;
  readonly silentMs: number;
  readonly isDrained: boolean;
  /** This one first, then by name. */
  readonly hosts: readonly HostView[];
  readonly leases: readonly LeaseView[];
  readonly mirror: LagView & {
    readonly incarnation: number;
    readonly seq: number;
    readonly problem?: string;
  };
  readonly orphans: readonly OrphanView[];
  /** Messages that nobody with the cluster's key can have sent. */
  readonly forged: number;
  /** What is wrong, one sentence each; none when everything is as it should be. */
  readonly problems: readonly string[];
}

export function clusterView(parts: ClusterParts): ClusterView {
  const { name, host, version, link, beats, leases, outbox } = parts;
  const { isIsolated, silentMs } = beats.standing();
  const lag = outbox.lag();
  const view = {
    ...{ name, host, version, isIsolated, silentMs, isDrained: leases.isDrained },
    nats: {
      servers: link.shown,
      ...(link.serverVersion !== undefined && { version: link.serverVersion }),
      ...(link.problem !== undefined && { problem: link.problem }),
    },
    hosts: [ownHost(parts, lag.records), ...otherHosts(parts)],
    leases: leases.table().map((lease) => leaseView(lease, parts)),
    mirror: {
      ...lag,
      ...{ incarnation: outbox.position.incarnation, seq: outbox.position.seq },
      ...(outbox.trouble && { problem: outbox.trouble.message }),
    },
    orphans: outbox.orphans().map(orphanView),
    forged: link.forged,
  };
  return { ...view, problems: problemsOf(view, leases.refusal) };
}

function ownHost(parts: ClusterParts, lag: number): HostView {
  const { host, version, beats, leases } = parts;
  const { isIsolated, silentMs } = beats.standing();
  return {
    ...{ host, version, lag, isThis: true, heardMs: silentMs, drained: leases.isDrained },
    state: isIsolated ? 'isolated' : 'here',
    holds: heldBy(host, parts),
  };
}

/** By the ledger: the newest beat of a host that was killed still says that it holds something. */
function heldBy(host: string, { leases, host: own }: ClusterParts): string[] {
  return leases.table().flatMap((lease) => {
    const isHeld = lease.holder?.host === host && !(host === own && hasRunOut(lease));
    return isHeld ? [lease.singleton] : [];
  });
}

/** The ledger names this host, which may not act any more: it has not read who has it now. */
function hasRunOut({ leftMs = 0 }: LeaseOf): boolean {
  return leftMs <= 0;
}

function otherHosts(parts: ClusterParts): HostView[] {
  const { host: own, clock, beats, leases } = parts;
  const hosts = leases.hosts();
  return [...beats.heard]
    .filter(([host]) => host !== own)
    .sort(([one], [other]) => one.localeCompare(other))
    .map(([host, { version, heardMs: at, lag }]) => {
      const heardMs = Math.max(0, Math.round(clock.monotonic() - at));
      const state = heardMs < SILENT_MS ? 'there' : heardMs < GONE_MS ? 'silent' : 'gone';
      return {
        ...{ host, version, lag, state, heardMs, isThis: false },
        drained: hosts.get(host)?.drained ?? false,
        holds: heldBy(host, parts),
      };
    });
}

function leaseView(lease: LeaseOf, { host, heldSince }: ClusterParts): LeaseView {
  const { singleton, last, leftMs } = lease;
  const holder = lease.holder?.host === host && hasRunOut(lease) ? undefined : lease.holder;
  const since = holder && heldSince(singleton, holder.host);
  return {
    singleton,
    ...(holder && { holder: holder.host, token: holder.token }),
    ...(since !== undefined && { since }),
    ...(leftMs !== undefined && { leftMs: Math.round(leftMs) }),
    ...(last && { last: last.host }),
  };
}

function orphanView(
  { singleton, by, token, after, to, records, exportedAt }: Orphan,
  at: number,
): OrphanView {
  return {
    ...{ number: at + 1, singleton, by, token, after, to: to ?? after, records: records ?? 0 },
    ...(exportedAt !== undefined && { exportedAt }),
  };
}

function problemsOf(
  {
    nats,
    isIsolated,
    silentMs,
    mirror,
    orphans,
    leases,
  }: Pick<ClusterView, 'nats' | 'isIsolated' | 'silentMs' | 'mirror' | 'orphans' | 'leases'>,
  refusal: { readonly host?: string } | undefined,
): string[] {
  const open = orphans.filter(({ exportedAt }) => exportedAt === undefined);
  const vacant = leases.filter(({ holder }) => holder === undefined).map(({ singleton }) => singleton);
  const why = nats.problem === undefined ? '' : `: ${nats.problem}`;
  return [
    ...(isIsolated ? [`cut off from the others for ${Math.round(silentMs / 1_000)} s${why}`] : []),
    ...(mirror.problem === undefined ? [] : [`the log is not mirrored: ${mirror.problem}`]),
    ...(mirror.ms > LAGGING_MS
      ? [`${mirror.records} records are not on the stream, the oldest for ${Math.round(mirror.ms / 1_000)} s`]
      : []),
    ...(refusal
      ? [
          `${refusal.host === undefined ? 'a host' : `the host ${refusal.host}`} of another version holds leases: this one claims none`,
        ]
      : []),
    ...(vacant.length > 0 ? [`nobody holds ${vacant.join(', ')}`] : []),
    ...open.map(
      ({ singleton, by, records }) =>
        `${records} records of ${singleton} are an orphaned branch: ${by} had taken it over`,
    ),
  ];
}
