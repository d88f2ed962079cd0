import type { Lease, Singleton } from '../../../core/contracts/cluster.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Leases } from '../leases/leases.ts';
import { numberOf } from '../leases/ledger.ts';
import type { LastHolder } from '../leases/message.ts';
import type { HolderMessages } from '../messages/holder.ts';
import type { ClusterRecords } from '../records.ts';
import { noteTakeover } from './notices.ts';
import { refuseOutdated } from './software.ts';
import { type Inherited, Succession, type SuccessionOptions } from './succession.ts';

export interface HandoverOptions extends SuccessionOptions {
  readonly services: SuccessionOptions['services'] & Pick<Services, 'logger'>;
  /** Version of Holdfast that this host runs. */
  readonly release: string;
  readonly holder: Pick<HolderMessages, 'hold' | 'release'>;
  readonly leases: Pick<Leases, 'release'>;
  readonly records: Pick<ClusterRecords, 'singleton'>;
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
  readonly #succession: Succession;
  readonly #works: ReadonlyMap<string, Work>;
  /** Why this host leaves singletons to others: its machines are older than those that did their work last. */
  readonly #outdated = new Map<string, HoldfastError>();
  #isStopped = false;

  constructor(singletons: readonly Singleton[], options: HandoverOptions) {
    this.#options = options;
    this.#succession = new Succession(options);
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
      const { isRunning } = work;
      try {
        if (isRunning) records.singleton(name, { type: 'ENDING', at: at(), reason });
      } finally {
        await ending; // whatever could be recorded: the lease is released after this turn
        work.isRunning = false;
      }
      if (!isRunning) return;
      records.singleton(name, { type: 'ENDED', at: at() });
      // A stop sends what is left before the leases are released; what the log does not take can be waited for by nobody.
      const isFrozen = services.log.status().state === 'frozen';
      if (patienceMs > 0 && !this.#isStopped && !isFrozen) await this.#sent(work);
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

  /** Notes also a takeover that was recorded although the work did not come to its beginning: a successor goes on from it. */
  async #takesOver(singleton: Singleton, lease: Lease, inherited: Inherited): Promise<void> {
    let hasBegun = false;
    try {
      await singleton.begin(lease, inherited.left);
      hasBegun = true;
    } finally {
      noteTakeover(this.#options, singleton, lease.token, inherited, hasBegun);
    }
  }

  /** Notes what an earlier process did not live to note: it ended amid a takeover. */
  noteTakeovers(): void {
    for (const { singleton } of this.#works.values()) {
      const { token } = this.#options.recorded(singleton.name) ?? {};
      if (token !== undefined) noteTakeover(this.#options, singleton, token);
    }
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
    try {
      records.singleton(name, { type: 'TAKING', at: clock.now(), token, ...from, software });
      const inherited = await this.#succession.inheritanceFor(
        singleton,
        lease,
        last,
        () => work.lease === lease,
      );
      const { left } = inherited;
      refuseOutdated(name, software, (left ?? recorded(name))?.begunWith);
      if (work.lease === lease) await this.#takesOver(singleton, lease, inherited);
      if (work.lease !== lease) throw new Error(LOST);
      work.isRunning = true;
      this.#outdated.delete(name);
      holder.hold(name, {
        token,
        isHeld: () => work.lease === lease && this.#stands(lease),
        counts: () => (work.lease ?? work.leaving) === lease && this.#stands(lease),
      });
      const fenced = left && { fencedAt: left.seq };
      records.singleton(name, { type: 'BEGUN', at: clock.now(), host, ...fenced });
    } catch (error) {
      logger.error({ err: error, singleton: name }, 'cluster.did_not_begin');
      if (isCoded(error, 'HF_CLUSTER_OUTDATED')) this.#outdated.set(name, error);
      const isOurs = work.lease === lease;
      const passes = !isOurs || isPassing(error);
      const failed = { at: clock.now(), reason: isOurs ? reasonOf(error) : LOST, ...(passes && { passes }) };
      let withholdMs = 0;
      try {
        withholdMs = records.singleton(name, { type: 'BEGIN_FAILED', ...failed });
      } finally {
        // Not awaited: the release waits for this turn to be over.
        if (isOurs) void leases.release(name, 'it did not begin here', undefined, passes ? 0 : withholdMs);
      }
    }
  }

  #stands(lease: Lease): boolean {
    return this.#options.services.clock.monotonic() < lease.deadline();
  }
}

const LOST = 'it was lost while it began';

/** What NATS says during an election, to every host alike: who waits for longer than that lasts leaves the work to nobody. */
const PASSING = [
  'HF_CLUSTER_UNREACHABLE',
  'HF_CLUSTER_TIMEOUT',
  'HF_CLUSTER_STREAM_UNAVAILABLE',
  'HF_CLUSTER_STREAM_UNKNOWN',
  'HF_CLUSTER_STREAM_REWOUND',
] as const;

function isPassing(error: unknown): boolean {
  return PASSING.some((code) => isCoded(error, code));
}

function reasonOf(error: unknown): string {
  if (isCoded(error)) return `${error.what} ${error.remedy}`.slice(0, 500);
  return 'see the log line cluster.did_not_begin';
}
