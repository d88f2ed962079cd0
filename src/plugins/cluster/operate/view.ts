import type { ClusterStanding } from '../../../core/contracts/cluster.ts';
import { timestamp } from '../../../core/host/terminal.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { GONE_MS, SILENT_MS } from '../durations.ts';

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
  standing(): ClusterStanding;
  readonly beats: {
    readonly heard: ReadonlyMap<string, HeardOf>;
    /** Why this host cannot prove that it reaches a quorum, where a person has to fix it. */
    readonly trouble: Error | undefined;
  };
  readonly shared: {
    /** Why this host cannot read the messages to every host, where a person has to fix it. */
    readonly trouble: Error | undefined;
  };
  readonly leases: {
    table(): readonly LeaseOf[];
    hosts(): ReadonlyMap<string, { readonly drained: boolean }>;
    readonly isDrained: boolean;
    /** A host of another version keeps this one from claiming anything. */
    readonly refusal: { readonly host?: string; readonly version?: string | undefined } | undefined;
    /** Why this host takes nothing over: it cannot read or write the ledger, or may not compete in it. */
    readonly trouble: Error | undefined;
    /** Why this host claims nothing, and leaves what it has to others: it can carry out nothing. */
    readonly obstacle: string | undefined;
    /** The ledger was not read for a whole lease. */
    readonly isUnread: boolean;
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
  /** Why this host has left the cluster, while it goes on alone: another process has its name. */
  readonly leftBecause: Error | undefined;
  /** Why this host leaves singletons to others, or refuses calls: it and the others have releases that do not go together. */
  readonly outdated: readonly HoldfastError[];
  /** Since when a host has held a singleton, where that is known; epoch milliseconds. */
  heldSince(singleton: string, holder: string): number | undefined;
  /** Whether a host said that it stops, and was not heard since. */
  hasStopped(host: string): boolean;
}

interface HeardOf {
  readonly run: string;
  readonly version: string;
  /** When its newest beat came, by the clock of durations. */
  readonly heardMs: number;
  /** Records that are not on its stream; absent of a host that is not heard. */
  readonly lag?: number;
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

/** A stream that is so far behind loses that much when the machine is lost now. */
const LAGGING_MS = 10_000;

export interface HostView {
  readonly host: string;
  readonly isThis: boolean;
  /** `unknown`: not heard, while this host is cut off. */
  readonly state: 'here' | 'there' | 'isolated' | 'silent' | 'stopped' | 'gone' | 'unknown';
  /** Since its newest beat, milliseconds. */
  readonly heardMs: number;
  readonly version: string;
  readonly drained: boolean;
  /** Absent while that is unknown. */
  readonly holds?: readonly string[];
  /** Records that are not on its stream; absent of a host that is not heard. */
  readonly lag?: number;
}

export interface LeaseView {
  readonly singleton: string;
  /** Absent while nobody holds it, or that is unknown. */
  readonly holder?: string;
  /** This host is cut off, or cannot read the ledger, and another one may hold it. */
  readonly isUnknown?: true;
  readonly token?: string;
  readonly since?: number;
  /** How long this host may act without another renewal. */
  readonly leftMs?: number;
  /** Who held it before, as far as this host knows. */
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
  /** It refuses what writes: what others changed may be unknown here. */
  readonly isIsolated: boolean;
  /** It is back, and has not read yet what the others said while it was away. */
  readonly isBehind: boolean;
  readonly silentMs: number;
  /** Since when this host knows nothing of the others; absent while it does. Epoch milliseconds. */
  readonly unknownSince?: number;
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

/** What `cluster move` answers. */
export interface MovedView extends ClusterView {
  /** The host that it was to move to, where that one held it already. */
  readonly hadIt?: string;
}

export function clusterView(parts: ClusterParts): ClusterView {
  const { name, host, version, link, clock, leases, outbox } = parts;
  const { isIsolated, isBehind, silentMs } = parts.standing();
  const lag = outbox.lag();
  const view = {
    ...{ name, host, version, isIsolated, isBehind, silentMs, isDrained: leases.isDrained },
    ...(isCutOff(parts) && { unknownSince: Math.round(clock.now() - silentMs) }),
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
  return { ...view, problems: problemsOf(view, parts) };
}

/** It hears nothing of the others; a host that refuses what writes for another reason hears their beats. */
function isCutOff(parts: ClusterParts): boolean {
  const { isIsolated, silentMs } = parts.standing();
  return isIsolated && silentMs > SILENT_MS;
}

/** Who of the others holds what. */
function isHoldingUnknown(parts: ClusterParts): boolean {
  return isCutOff(parts) || parts.leases.isUnread;
}

function ownHost(parts: ClusterParts, lag: number): HostView {
  const { host, version, leases } = parts;
  const { isIsolated, silentMs } = parts.standing();
  return {
    ...{ host, version, lag, isThis: true, heardMs: silentMs, drained: leases.isDrained },
    state: isIsolated ? 'isolated' : 'here',
    holds: heldBy(host, parts),
  };
}

/** By the ledger: the newest beat of a host that was killed still says that it holds something. */
function heldBy(host: string, parts: ClusterParts): string[] {
  const { leases, host: own } = parts;
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
  const { host: own, clock, beats, leases, hasStopped } = parts;
  const hosts = leases.hosts();
  const silent = isCutOff(parts) ? 'unknown' : undefined;
  return [...beats.heard]
    .filter(([host]) => host !== own)
    .sort(([one], [other]) => one.localeCompare(other))
    .map(([host, { version, heardMs: at, lag }]) => {
      const heardMs = Math.max(0, Math.round(clock.monotonic() - at));
      const present = heardMs < SILENT_MS ? 'there' : (silent ?? (heardMs < GONE_MS ? 'silent' : 'gone'));
      const state = hasStopped(host) ? 'stopped' : present;
      return {
        ...{ host, version, state, heardMs, isThis: false },
        ...(state === 'there' && { lag }),
        drained: hosts.get(host)?.drained ?? false,
        ...(!isHoldingUnknown(parts) && { holds: heldBy(host, parts) }),
      };
    });
}

function leaseView(lease: LeaseOf, parts: ClusterParts): LeaseView {
  const { host, heldSince } = parts;
  const { singleton, last, leftMs } = lease;
  const isOurs = lease.holder?.host === host;
  if (isHoldingUnknown(parts) && !(isOurs && !hasRunOut(lease))) {
    const before = lease.holder ?? last;
    return { singleton, isUnknown: true, ...(before && { last: before.host }) };
  }
  const holder = isOurs && hasRunOut(lease) ? undefined : lease.holder;
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

type Shown = Pick<
  ClusterView,
  'host' | 'nats' | 'isIsolated' | 'isBehind' | 'silentMs' | 'unknownSince' | 'mirror' | 'orphans' | 'leases'
>;

function problemsOf(
  view: Shown,
  { leases: { refusal, trouble, obstacle }, beats, shared, leftBecause, outdated, version }: ClusterParts,
): string[] {
  const { host, mirror, orphans, leases } = view;
  const open = orphans.filter(({ exportedAt }) => exportedAt === undefined);
  const vacant = leases.filter(({ holder, isUnknown }) => holder === undefined && !isUnknown);
  return [
    ...(leftBecause
      ? [`this host has left the cluster until it is started again: ${textOf(leftBecause)}`]
      : []),
    ...isolationOf(view),
    ...(beats.trouble ? [`this host cannot prove that it reaches the others: ${textOf(beats.trouble)}`] : []),
    ...(shared.trouble
      ? [`this host does not hear what is said to every host: ${textOf(shared.trouble)}`]
      : []),
    ...(mirror.problem === undefined ? [] : [`the log is not mirrored: ${mirror.problem}`]),
    ...(mirror.ms > LAGGING_MS
      ? [`${mirror.records} records are not on the stream, the oldest for ${Math.round(mirror.ms / 1_000)} s`]
      : []),
    ...(refusal
      ? [
          `${refusal.host === undefined ? 'a host' : `the host ${refusal.host}`} of ${refusal.version === undefined ? 'another version' : `version ${refusal.version}`} holds leases: this one, of version ${version}, claims none until one of them is updated`,
        ]
      : []),
    ...(obstacle === undefined
      ? []
      : [`this host leaves its work to others, and takes nothing over: ${obstacle}`]),
    ...(trouble && view.unknownSince === undefined ? [ledgerProblem(trouble, leases)] : []),
    ...outdated.map(({ what, remedy }) => `${what} ${remedy}`),
    ...(vacant.length > 0 ? [`nobody holds ${namesOf(vacant)}`] : []),
    ...open.map(
      ({ number, singleton, by, records }) =>
        `${records} records of ${singleton} on ${host} are an orphaned branch: ${by} had taken it over; \`holdfast cluster orphans export ${number} FILE\` on ${host} ends this`,
    ),
  ];
}

function ledgerProblem(trouble: Error, leases: readonly LeaseView[]): string {
  const unknown = leases.filter(({ isUnknown }) => isUnknown);
  const whose = unknown.length > 0 ? `, and who holds ${namesOf(unknown)} is unknown` : '';
  return `this host takes nothing over${whose}: ${textOf(trouble)}`;
}

function textOf(error: Error): string {
  return isCoded(error) ? `${error.what} ${error.remedy}` : error.message;
}

/** Says what is not known, instead of what was so once. */
function isolationOf({ nats, isIsolated, isBehind, silentMs, unknownSince, leases }: Shown): string[] {
  if (!isIsolated) return [];
  const why = nats.problem === undefined ? '' : ` (${nats.problem})`;
  if (isBehind || unknownSince === undefined)
    return [
      `what the other hosts said in the last ${Math.ceil(silentMs / 1_000)} s may be unread here, e.g. a revocation: this host refuses calls until it has read it${why}`,
    ];
  const unknown = leases.filter(({ isUnknown }) => isUnknown);
  const whose = unknown.length > 0 ? `, and who holds ${namesOf(unknown)}` : '';
  return [
    `cut off from the others since ${timestamp(unknownSince)}${why}: which hosts are there is unknown${whose}`,
  ];
}

function namesOf(leases: readonly LeaseView[]): string {
  return leases.map(({ singleton }) => singleton).join(', ');
}
