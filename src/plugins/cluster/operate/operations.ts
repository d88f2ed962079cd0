import { z } from 'zod';
import type { Cluster } from '../../../core/contracts/cluster.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { EventOf } from '../../../core/kernel/actors/definition.ts';
import { passed } from '../../../core/kernel/clock.ts';
import type { Json } from '../../../core/kernel/json.ts';
import type { OperatorsAct } from '../../../machines/cluster/host.ts';
import type { hostActor, singletonActor } from '../actors.ts';
import { ClusterError } from '../errors.ts';
import { type ClusterParts, type ClusterView, clusterView, type MovedView, PATHS } from './view.ts';

/** What the operations do, beside what they read. */
export interface OperatedCluster extends ClusterParts, Pick<Cluster, 'ask' | 'onAsked'> {
  /** Takes a host out of the lists of this one. */
  forget(host: string, act: OperatorsAct): void;
  /** Records what an operator did with a singleton, or with a host. */
  readonly record: {
    singleton(name: string, event: EventOf<typeof singletonActor.machine>): void;
    host(name: string, event: EventOf<typeof hostActor.machine>): void;
  };
  /** Notes that a branch was exported. @param number as `OrphanView` numbers it */
  exported(number: number, at: number): Promise<void>;
}

const MOVE = 'cluster.move';
const FORGET = 'cluster.forget';
/** A holder may take 30 s to end its work; then the lease has to run out. */
const MOVED_WITHIN_MS = 60_000;
/** The others take what was released with their next look. */
const DRAINED_WITHIN_MS = 5_000;
const SINCE_WITHIN_MS = 5_000;
const ASK_MS = 2_000;
const LOOK_MS = 100;
/** Who gave a singleton away does not take it back at once. */
const WITHHOLD_MS = 30_000;

const by = z.string().min(1).max(64);
const reason = z.string().min(1).max(300).optional();
const name = z.string().min(1).max(64);
const moveBody = z.object({ singleton: name, to: name.optional(), by, reason });
const drainBody = z.object({ undo: z.boolean().default(false), by, reason });
const forgetBody = z.object({ host: name, by, reason });
const exportedBody = z.object({ number: z.int().min(1), by, reason });

/** Registers the operations by which `holdfast cluster …` asks and steers a running host. */
export function registerOperations<S>(
  context: PluginContext<S>,
  operated: (started: S) => OperatedCluster,
): void {
  context.control((surface, started) => {
    const cluster = operated(started);
    serveOperation(surface, PATHS.view, z.object({}), () => clusterView(cluster));
    serveOperation(surface, PATHS.move, moveBody, (body, { signal }) => move(cluster, body, signal));
    serveOperation(surface, PATHS.drain, drainBody, (body) => drain(cluster, body));
    serveOperation(surface, PATHS.forget, forgetBody, (body) => forget(cluster, body));
    serveOperation(surface, PATHS.exported, exportedBody, async ({ number, ...act }) => {
      const at = cluster.clock.now();
      const branch = clusterView(cluster).orphans.find((one) => one.number === number);
      await cluster.exported(number, at);
      if (branch) cluster.record.singleton(branch.singleton, { type: 'BRANCH_EXPORTED', at, number, ...act });
      return clusterView(cluster);
    });
  });
}

/** Answers what operations of other hosts ask of this one. */
export function answerOperations(cluster: OperatedCluster): void {
  cluster.onAsked(MOVE, (body) => {
    const { data } = moveBody.safeParse(body);
    if (!data || holderOf(cluster, data.singleton) !== cluster.host) return undefined;
    void release(cluster, data);
    return { accepted: true };
  });
  cluster.onAsked(FORGET, (body) => {
    const { data } = forgetBody.safeParse(body);
    if (!data) return undefined;
    const { host, ...act } = data;
    cluster.forget(host, act);
    return { forgotten: true };
  });
}

type Move = z.output<typeof moveBody>;

/**
 * Moves a singleton to another host, and waits until that one holds it, or any other where none is named.
 *
 * @throws HF_CLUSTER_SINGLETON, HF_CLUSTER_HOST, HF_CLUSTER_MOVE
 */
async function move(cluster: OperatedCluster, wanted: Move, signal: AbortSignal): Promise<MovedView> {
  const { singleton, to } = wanted;
  const { hosts, leases, unknownSince } = clusterView(cluster);
  const lease = leases.find((one) => one.singleton === singleton);
  if (!lease) {
    const known = leases.map((one) => one.singleton).join(', ') || 'none';
    throw new ClusterError('HF_CLUSTER_SINGLETON', { singleton, known });
  }
  const from = lease.holder;
  if (lease.isUnknown) throw failed(singleton, `${whyUnknown(unknownSince)}: who holds it is unknown`);
  if (from === undefined) throw failed(singleton, 'nobody holds it now');
  if (to === from) return { ...clusterView(cluster), hadIt: from };
  const able = hosts.filter(({ state, drained, host }) => isThere(state) && !drained && host !== from);
  if (to === undefined ? able.length === 0 : !able.some(({ host }) => host === to)) {
    const known = able.map(({ host }) => host).join(', ') || 'none';
    throw new ClusterError('HF_CLUSTER_HOST', { host: to ?? 'any', known });
  }
  cluster.record.singleton(singleton, {
    ...{ type: 'MOVE_REQUESTED', at: cluster.clock.now(), by: wanted.by },
    ...{ to, reason: wanted.reason },
  });
  if (from === cluster.host) void release(cluster, wanted);
  else {
    const { answers } = await cluster.ask(MOVE, wanted as Json, ASK_MS);
    if (!answers.some(({ host }) => host === from)) throw failed(singleton, `${from} does not answer`);
  }
  const until = cluster.clock.monotonic() + MOVED_WITHIN_MS;
  for (;;) {
    const holder = holderOf(cluster, singleton);
    if (holder !== undefined && holder !== from) {
      if (to !== undefined && holder !== to) throw failed(singleton, `${to} did not take it, ${holder} did`);
      await sinceKnown(cluster, [singleton], signal);
      return clusterView(cluster);
    }
    if (cluster.clock.monotonic() > until)
      throw failed(singleton, holder === from ? `${from} still has it` : 'nobody has taken it');
    await passed(cluster.clock, LOOK_MS);
    signal.throwIfAborted();
  }
}

function release({ leases }: OperatedCluster, { singleton, to, by: who }: Move): Promise<void> {
  return leases.release(singleton, `${who} moved it`, to, WITHHOLD_MS);
}

/** Gives away everything that this host holds, and claims nothing until it is undone. */
async function drain(
  cluster: OperatedCluster,
  { undo, by: who, reason: why }: z.output<typeof drainBody>,
): Promise<ClusterView> {
  const { clock, leases, record, host } = cluster;
  record.host(host, { type: undo ? 'UNDRAINED' : 'DRAINED', at: clock.now(), by: who, reason: why });
  if (undo) cluster.leases.undrain();
  else {
    const held = leases.table().flatMap((one) => (one.holder?.host === host ? [one.singleton] : []));
    await cluster.leases.drain(`${who} drained this host`);
    const until = cluster.clock.monotonic() + DRAINED_WITHIN_MS;
    const isVacant = (singleton: string) => holderOf(cluster, singleton) === undefined;
    while (held.some(isVacant) && cluster.clock.monotonic() < until) await passed(cluster.clock, LOOK_MS);
    await sinceKnown(cluster, held);
  }
  return clusterView(cluster);
}

/**
 * Has all hosts forget one that does not come back.
 *
 * @throws HF_CLUSTER_HOST_UNKNOWN nobody has heard of it; HF_CLUSTER_HOST_LIVES it is heard, or holds something;
 * HF_CLUSTER_FORGET a host that may live did not answer, and lists it still
 */
async function forget(
  cluster: OperatedCluster,
  { host, ...act }: z.output<typeof forgetBody>,
): Promise<ClusterView> {
  const { hosts, leases, unknownSince } = clusterView(cluster);
  const known = hosts.find((one) => one.host === host);
  const holds = leases.filter(({ holder }) => holder === host).map(({ singleton }) => singleton);
  if (!known && !cluster.leases.hosts().has(host)) {
    const names = hosts.filter(({ isThis }) => !isThis).map((one) => one.host);
    throw new ClusterError('HF_CLUSTER_HOST_UNKNOWN', { host, known: names.join(', ') || 'none' });
  }
  if (unknownSince !== undefined || leases.some(({ isUnknown }) => isUnknown)) {
    const reason = `${whyUnknown(unknownSince)}: whether that one lives is unknown`;
    throw new ClusterError('HF_CLUSTER_HOST_LIVES', { host, reason });
  }
  if (known && known.state !== 'gone' && known.state !== 'stopped')
    throw new ClusterError('HF_CLUSTER_HOST_LIVES', { host, reason: 'its beats are heard' });
  if (holds.length > 0)
    throw new ClusterError('HF_CLUSTER_HOST_LIVES', { host, reason: `it holds ${holds.join(', ')}` });
  cluster.forget(host, act);
  // The host itself is not asked: it was forgotten.
  const { unanswered } = await cluster.ask(FORGET, { host, ...act } as Json, ASK_MS);
  if (unanswered.length > 0)
    throw new ClusterError('HF_CLUSTER_FORGET', { host, others: unanswered.join(', ') });
  return clusterView(cluster);
}

/** A new holder says with its beats since when: until then, or some seconds, it is waited for. */
async function sinceKnown(
  cluster: OperatedCluster,
  singletons: readonly string[],
  signal?: AbortSignal,
): Promise<void> {
  const until = cluster.clock.monotonic() + SINCE_WITHIN_MS;
  const isKnown = (singleton: string) => {
    const holder = holderOf(cluster, singleton);
    return holder !== undefined && cluster.heldSince(singleton, holder) !== undefined;
  };
  while (!singletons.every(isKnown) && cluster.clock.monotonic() < until) {
    await passed(cluster.clock, LOOK_MS);
    signal?.throwIfAborted();
  }
}

function holderOf({ leases }: OperatedCluster, singleton: string): string | undefined {
  return leases.table().find((lease) => lease.singleton === singleton)?.holder?.host;
}

function whyUnknown(unknownSince: number | undefined): string {
  return unknownSince === undefined ? 'this host cannot read the ledger' : 'this host is cut off';
}

const isThere = (state: string) => state === 'here' || state === 'there';

function failed(singleton: string, reason: string) {
  return new ClusterError('HF_CLUSTER_MOVE', { singleton, reason });
}
