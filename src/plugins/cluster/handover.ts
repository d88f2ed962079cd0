import type { Lease, Singleton } from '../../core/contracts/cluster.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import { newestTakeover } from '../../core/kernel/actors/adoption.ts';
import { type HoldfastError, isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { SingletonContext } from '../../machines/cluster/singleton.ts';
import { singletonActor } from './actors.ts';
import { ClusterError } from './errors.ts';
import type { Leases } from './leases/leases.ts';
import { numberOf } from './leases/ledger.ts';
import type { LastHolder } from './leases/message.ts';
import type { HolderMessages } from './messages/holder.ts';
import type { LogStreams } from './mirror/host-log.ts';
import { begunOnStreams, inheritanceOf, type Left, placeFence } from './mirror/inheritance.ts';
import type { ClusterRecords } from './records.ts';
import { refuseOutdated } from './software.ts';

export interface HandoverOptions {
  readonly services: Pick<Services, 'clock' | 'logger' | 'log'> & {
    readonly actors: Pick<Services['actors'], 'knownStates'>;
  };
  /** Name of this host. */
  readonly host: string;
  /** Version of Holdfast that this host runs. */
  readonly release: string;
  readonly streams: LogStreams;
  readonly holder: Pick<HolderMessages, 'hold' | 'release'>;
  readonly leases: Pick<Leases, 'release'>;
  readonly records: Pick<ClusterRecords, 'singleton'>;
  /** What was recorded here of a singleton's tenures. */
  readonly recorded: (
    singleton: string,
  ) => Pick<SingletonContext, 'begunBy' | 'begunWith' | 'branches'> | undefined;
  /** Resolves when a record of this host stands on its stream. */
  readonly mirrored: (seq: number) => Promise<void>;
}

/** How long effects under way may take when a singleton goes elsewhere by plan, and then the log on its way to the stream. */
const PATIENCE_MS = 5_000;

/** One singleton on this host: what is to happen to it happens one after the other. */
interface Work {
  readonly singleton: Singleton;
  turn: Promise<void>;
  /** The lease that its work runs under, or is about to. */
  lease: Lease | undefined;
  /** The one under which it comes to its end by plan. */
  leaving: Lease | undefined;
  isRunning: boolean;
  /** Resolved when the lease is over, while the work comes to its end by plan. */
  hurry?: PromiseWithResolvers<void>;
}

/**
 * Begins the work of a singleton where this host gained its lease, and ends it where it lost it (docs/cluster.md, "Takeover"). Before the
 * work begins, the old holder's stream gets a fence: what that host asked for before it is taken up here, and what it asks
 * for later has no effect.
 */
export class Handover {
  readonly #options: HandoverOptions;
  readonly #works: ReadonlyMap<string, Work>;
  /** Why this host leaves singletons to others: its machines are older than those that did their work last. */
  readonly #outdated = new Map<string, HoldfastError>();
  #isStopped = false;

  constructor(singletons: readonly Singleton[], options: HandoverOptions) {
    this.#options = options;
    this.#works = new Map(
      singletons.map((singleton) => [
        singleton.name,
        { singleton, turn: Promise.resolve(), lease: undefined, leaving: undefined, isRunning: false },
      ]),
    );
  }

  /** The types of a singleton's actors. */
  typesOf(singleton: string): readonly string[] {
    return this.#works.get(singleton)?.singleton.actorTypes ?? [];
  }

  /** The types of all their actors. */
  get actorTypes(): readonly string[] {
    return [...this.#works.values()].flatMap(({ singleton }) => singleton.actorTypes);
  }

  /** The singletons whose work runs here. */
  get running(): readonly string[] {
    return [...this.#works.values()]
      .filter(({ isRunning }) => isRunning)
      .map(({ singleton }) => singleton.name);
  }

  /** Why this host leaves some of them to others until it is updated: one HF_CLUSTER_OUTDATED each. */
  get outdated(): readonly HoldfastError[] {
    return [...this.#outdated.values()];
  }

  /** This host has the lease of a singleton. @param last who held it before */
  gained(lease: Lease, last: LastHolder | undefined): void {
    const work = this.#works.get(lease.singleton);
    if (!work || this.#isStopped) return;
    work.lease = lease;
    work.leaving = undefined;
    delete work.hurry;
    void this.#next(work, () => this.#begin(work, lease, last));
  }

  /**
   * A fence on this host's stream: another host took a singleton over. It may be found late, when this host has the lease again:
   * then it says nothing. Resolves when nothing of the work before it is under way any more.
   */
  fenced(singleton: string, token: string, by: string): Promise<void> {
    const held = this.#works.get(singleton)?.lease?.token;
    if (held !== undefined && numberOf(held) >= numberOf(token)) return Promise.resolve();
    return this.lost(singleton, `${by} took it over`);
  }

  /** What is under way is interrupted. Resolves when nothing of the work is any more. */
  lost(singleton: string, reason: string): Promise<void> {
    const work = this.#works.get(singleton);
    if (!work) return Promise.resolve();
    work.hurry?.resolve();
    work.leaving = undefined;
    return this.#end(work, reason, 0);
  }

  /**
   * The singleton goes elsewhere by plan, and its lease lasts until then: effects under way come to their end, and what they
   * led to goes to the stream, so that the next holder knows. Each has some seconds, and none when the lease is lost meanwhile.
   * Resolves when nothing of the work is under way any more.
   */
  release(singleton: string, reason: string): Promise<void> {
    const work = this.#works.get(singleton);
    if (!work) return Promise.resolve();
    work.hurry ??= Promise.withResolvers();
    work.leaving ??= work.lease;
    return this.#end(work, reason, PATIENCE_MS);
  }

  #end(work: Work, reason: string, patienceMs: number): Promise<void> {
    const { records, services, holder } = this.#options;
    const { name } = work.singleton;
    const at = () => services.clock.now();
    work.lease = undefined;
    holder.release(name);
    // What is beginning is interrupted by its end.
    const ending = work.singleton.end(reason, patienceMs);
    ending.catch(() => {}); // it is awaited in its turn
    return this.#next(work, async () => {
      if (work.isRunning) records.singleton(name, { type: 'ENDING', at: at(), reason });
      await ending;
      if (!work.isRunning) return;
      records.singleton(name, { type: 'ENDED', at: at() });
      work.isRunning = false;
      // A stop sends what is left before the leases are released.
      if (patienceMs > 0 && !this.#isStopped) await this.#sent(work);
    });
  }

  /** Resolves when the stream has what was recorded, or when that cannot be waited for. */
  async #sent({ hurry }: Work): Promise<void> {
    const { mirrored, services } = this.#options;
    const late = Promise.withResolvers<void>();
    const cancel = services.clock.after(PATIENCE_MS, late.resolve);
    const sent = mirrored(services.log.lastSeq()).catch(() => {}); // this host stops
    await Promise.race([sent, late.promise, hurry?.promise ?? sent]);
    cancel();
  }

  /** Ends all work, and lets none begin any more. Resolves when nothing of it is under way. */
  async stop(reason: string): Promise<void> {
    this.#isStopped = true;
    await Promise.all([...this.#works.keys()].map((name) => this.release(name, reason)));
  }

  /** Resolves when every change that has begun is done. */
  async settled(): Promise<void> {
    await Promise.all([...this.#works.values()].map(({ turn }) => turn));
  }

  #next(work: Work, step: () => Promise<void>): Promise<void> {
    const { logger } = this.#options.services;
    const failed = (error: unknown) =>
      logger.error({ err: error, singleton: work.singleton.name }, 'cluster.handover_failed');
    work.turn = work.turn.then(step).catch(failed);
    return work.turn;
  }

  async #begin(work: Work, lease: Lease, last: LastHolder | undefined): Promise<void> {
    const { records, recorded, holder, host, release, leases, services } = this.#options;
    const { clock, logger } = services;
    const { singleton } = work;
    const { name, machines } = singleton;
    const { token } = lease;
    if (work.lease !== lease) return;
    if (!this.#stands(lease)) {
      // A renewal may come yet: then this host would hold it without doing anything.
      void leases.release(name, 'its lease ran out before it began');
      return;
    }
    const from = last && last.host !== host ? { from: last.host } : {};
    const software = { release, machines };
    records.singleton(name, { type: 'TAKING', at: clock.now(), token, ...from, software });
    try {
      const inheritance = await this.#inherit(work, lease, last);
      refuseOutdated(name, software, (inheritance ?? recorded(name))?.begunWith);
      if (work.lease === lease) await singleton.begin(lease, inheritance);
      if (work.lease !== lease) throw new Error(LOST);
      work.isRunning = true;
      this.#outdated.delete(name);
      holder.hold(name, {
        token,
        isHeld: () => work.lease === lease && this.#stands(lease),
        counts: () => (work.lease ?? work.leaving) === lease && this.#stands(lease),
      });
      const fenced = inheritance && { fencedAt: inheritance.seq };
      records.singleton(name, { type: 'BEGUN', at: clock.now(), host, ...fenced });
    } catch (error) {
      logger.error({ err: error, singleton: name }, 'cluster.did_not_begin');
      if (isCoded(error, 'HF_CLUSTER_OUTDATED')) this.#outdated.set(name, error);
      const reason = work.lease === lease ? reasonOf(error) : LOST;
      const withholdMs = records.singleton(name, { type: 'BEGIN_FAILED', at: clock.now(), reason });
      // Not awaited: the release waits for this turn to be over.
      if (work.lease === lease) void leases.release(name, 'it did not begin here', undefined, withholdMs);
    }
  }

  #stands(lease: Lease): boolean {
    return this.#options.services.clock.monotonic() < lease.deadline();
  }

  /** @returns undefined when this host's own log holds what was done last */
  async #inherit(work: Work, lease: Lease, last: LastHolder | undefined): Promise<Left | undefined> {
    const { streams, host, services } = this.#options;
    const { name, actorTypes } = work.singleton;
    let isFirst = true;
    for await (const held of this.#heldBefore(work.singleton, last)) {
      // Whoever held it since may have fenced it there.
      const isNewest = isFirst && held === last;
      isFirst = false;
      const isHere = held.host === host && (held.mirror?.seq ?? 0) <= services.log.lastSeq();
      if (isHere) {
        if (!(await this.#began(name, actorTypes, held.number))) continue;
        if (isNewest || !(await this.#isOrphaned(work, lease))) return undefined;
      }
      try {
        const fence = await placeFence(streams, held.host, { singleton: name, token: lease.token, by: host });
        const left = await inheritanceOf(streams, fence, actorTypes, isNewest);
        if (isSetBack(left, held))
          throw new ClusterError('HF_CLUSTER_UNFILLED', {
            host: held.host,
            seq: left.readTo,
            to: held.mirror?.seq ?? 0,
          });
        if (left.begun !== undefined && left.begun >= held.number) return left;
      } catch (error) {
        // It held the lease and never wrote a record to its stream.
        if (!isCoded(error, 'HF_CLUSTER_NO_LOG') || held.mirror !== undefined) throw error;
      }
    }
    return undefined;
  }

  /** Who held it, the newest first: as the ledger has it, and when none of those began its work, as the streams of all hosts do. */
  async *#heldBefore({ name, actorTypes }: Singleton, last: LastHolder | undefined): AsyncGenerator<Held> {
    // Whoever lost the lease before its work began has only what it knew of the singleton earlier.
    if (last) yield* [last, ...(last.before ?? [])];
    const { streams, host, recorded } = this.#options;
    const found: Held[] = [...(await begunOnStreams(streams, name, actorTypes))];
    const { begunBy } = recorded(name) ?? {};
    if (begunBy !== undefined) found.push({ host, number: numberOf(begunBy) });
    yield* found.sort((one, other) => other.number - one.number);
  }

  /**
   * Whether what this host did last for a singleton does not count, because another one had fenced it. Until its stream has what it
   * recorded, it may not have met the fence.
   */
  async #isOrphaned(work: Work, lease: Lease): Promise<boolean> {
    const { mirrored, services, recorded } = this.#options;
    const { actors, clock, log } = services;
    const { name, actorTypes } = work.singleton;
    const sent = mirrored(log.lastSeq()).then(
      () => true,
      () => true, // this host stops
    );
    const passed = () => new Promise<boolean>((resolve) => clock.after(LOOK_MS, () => resolve(false)));
    while (work.lease === lease && !(await Promise.race([sent, passed()])));
    const newest = Math.max(0, ...actors.knownStates(actorTypes).map(({ seq }) => seq));
    const { branches = [] } = recorded(name) ?? {};
    return branches.some(({ from, to }) => from <= newest && newest <= to);
  }

  /** Whether the work began here by the token of this number, or a later one. */
  async #began(name: string, types: readonly string[], number: number): Promise<boolean> {
    const { services, recorded } = this.#options;
    const { actors, log } = services;
    const { begunBy } = recorded(name) ?? {};
    if (begunBy !== undefined && numberOf(begunBy) >= number) return true;
    const states = actors.knownStates(types);
    // A takeover that was cut off is begun anew, from the host that it was of.
    if (newestTakeover(states, () => true)?.isComplete === false) return false;
    const newest = Math.max(0, ...states.map(({ seq }) => seq));
    for await (const { seq, event } of log.read({ actor: `${singletonActor.type}/${name}`, reverse: true })) {
      if (seq < newest && event.type === 'TAKING') return numberOf(String(event.token)) >= number;
    }
    return false;
  }
}

const LOST = 'it was lost while it began';
/** How often is looked whether it is lost, milliseconds. */
const LOOK_MS = 100;

/** Who held a singleton, by a token of which number, and how far its log was on its stream. */
type Held = Pick<LastHolder, 'host' | 'number' | 'mirror'>;

/** The ledger says how far that host's log was on its stream. One whose log began anew has a later incarnation. */
function isSetBack({ incarnation, readTo }: Left, { mirror }: Held): boolean {
  if (!mirror) return false;
  const missing = Number(mirror.incarnation) - Number(incarnation);
  return missing > 0 || (missing === 0 && readTo < mirror.seq);
}

function reasonOf(error: unknown): string {
  if (isCoded(error)) return `${error.what} ${error.remedy}`.slice(0, 500);
  return 'see the log line cluster.did_not_begin';
}
