import { passed } from '../../../core/kernel/clock.ts';
import type { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import type { Takeover } from '../../../machines/cluster/singleton.ts';
import { numberOf } from '../leases/ledger.ts';
import { KeptFences } from './kept-fences.ts';
import { type OrphanedBranch, OrphanedBranches } from './orphans.ts';
import type { OutboxOptions } from './outbox-options.ts';
import type { FoundFence, MetFence } from './standing.ts';

/** Whoever ends the work of a singleton that another host took over gets so long, until the mirroring goes on. */
const FENCED_MS = 15_000;
/** How long a record may take to the disk, milliseconds. What waits for that is tried once more. */
const RECORDED_MS = 5_000;

export interface FencesOptions
  extends Pick<
    OutboxOptions,
    'dataDir' | 'log' | 'clock' | 'logger' | 'typesOf' | 'begunBy' | 'onFenced' | 'onOrphaned'
  > {
  readonly reader: SqliteReader;
}

/** Which singleton something is about. */
export interface OfSingleton {
  readonly singleton: string;
}

/** What follows from the fences on this host's stream, and from those that were lost there: work ends, and what was recorded for it since is an orphaned branch. */
export class Fences {
  readonly #options: FencesOptions;
  readonly #orphans: OrphanedBranches;
  readonly kept: KeptFences;
  /** What follows from one fence comes after what follows from those before it. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: FencesOptions) {
    const { dataDir, reader, logger } = options;
    const onError = (error: unknown) => logger.warn({ err: error }, 'cluster.mirror.fences');
    this.#options = options;
    this.#orphans = new OrphanedBranches(dataDir, reader, onError);
    this.kept = new KeptFences(dataDir, reader, onError);
  }

  /** Records that this host made in the name of a singleton that was no longer its own. */
  orphans(): readonly OrphanedBranch[] {
    return this.#orphans.list();
  }

  /** Notes that one was written to a file. @param number of `orphans`, from 1 @throws HF_CLUSTER_BRANCH */
  async exported(number: number, at: number): Promise<void> {
    this.#orphans.exported(number, at);
    await this.#orphans.saved();
  }

  /** After a crash: what was fenced then has ended by now. @param upTo the newest record */
  start(upTo: number): void {
    this.#orphans.endAll(upTo);
  }

  /** Tells of the branches that have ended, unless it is done: their ends are on the disk then. @throws what the disk says; call it again */
  tell(): Promise<void> {
    return this.#next(() => this.#tell());
  }

  /** Resolves when the work that a fence ends has ended. @param incarnation of the stream that it was read on */
  meet(fence: FoundFence, incarnation: number): Promise<void> {
    return this.#next(async () => {
      const { singleton, streamSeq } = fence;
      await this.kept.keep(fence, this.#options.typesOf(singleton), { incarnation, streamSeq });
      if (!this.#isLate(fence)) await this.#follow(fence, incarnation);
    });
  }

  /**
   * The host that took a singleton over says so itself: the servers may have lost its fence. What was recorded here since does not count, up to
   * where this host took the work over again.
   *
   * @param incarnation of the stream as it is now
   * @returns whether that is noted: not while this host lacks the record, or its log takes nothing
   */
  async takenOver(takeover: Takeover & OfSingleton, incarnation: number): Promise<boolean> {
    const { singleton, token, by, seq, hash } = takeover;
    const { log, reader, typesOf } = this.#options;
    if (seq > log.lastSeq() || log.status().state === 'frozen' || !(await this.#isDurable(seq))) return false;
    // This log has another record there: nothing in it is what that host knows of.
    if (seq > 0 && (reader.hashBefore(seq + 1) ?? hash) !== hash) return true;
    const fence = { singleton, token, by, atSeq: seq };
    const types = typesOf(singleton);
    let isNoted = false;
    await this.#next(async () => {
      const isLate = this.#isLate(fence);
      if (!(await this.#isDurable(log.lastSeq()))) return;
      // Where it went on from its own records, they count.
      if (!isLate || this.#orphans.cameBack(fence, types)) {
        await this.kept.keep(fence, types);
        await this.#follow(fence, incarnation);
      }
      isNoted = true;
    });
    return isNoted;
  }

  #next(step: () => Promise<void>): Promise<void> {
    const met = this.#turn.then(step);
    this.#turn = met.catch(() => {}); // whoever met it hears of it
    return met;
  }

  async #follow(fence: MetFence, incarnation: number): Promise<void> {
    if (this.#orphans.isNew(fence)) await this.#end(fence, incarnation);
    await this.#tell();
  }

  async #end(fence: MetFence, incarnation: number): Promise<void> {
    const { typesOf, clock, log, logger } = this.#options;
    const { singleton, by, atSeq, token } = fence;
    logger.info({ singleton, by, fencing: token, atSeq }, 'cluster.mirror.fenced');
    this.#orphans.begin(fence, incarnation, typesOf(singleton));
    await this.#orphans.saved();
    const given = passed(clock, FENCED_MS);
    await Promise.race([this.#ended(fence), given]);
    const upTo = log.lastSeq();
    await Promise.race([log.whenDurable(upTo).catch(() => {}), given]);
    this.#orphans.end(fence, upTo);
  }

  /** Only what is on the disk is told; what a crash keeps out of the log is told again. */
  async #tell(): Promise<void> {
    const { log, onOrphaned } = this.#options;
    await this.#orphans.saved();
    const { untold } = this.#orphans;
    if (untold.length === 0) return;
    for (const branch of untold) onOrphaned(branch);
    if (!(await this.#isDurable(log.lastSeq()))) return;
    this.#orphans.told(untold);
    await this.#orphans.saved();
  }

  /** @returns whether a record is on the disk, now or within some seconds */
  async #isDurable(seq: number): Promise<boolean> {
    const { clock, log } = this.#options;
    await Promise.race([log.whenDurable(seq).catch(() => {}), passed(clock, RECORDED_MS)]);
    return log.status().durableSeq >= seq;
  }

  /** Whoever placed it had lost the lease by then: the work here began by a later one, and goes on. */
  #isLate({ singleton, token }: MetFence): boolean {
    const begunBy = this.#options.begunBy(singleton);
    return begunBy !== undefined && numberOf(begunBy) >= numberOf(token);
  }

  async #ended(fence: MetFence): Promise<void> {
    const { onFenced, logger } = this.#options;
    try {
      await onFenced(fence);
    } catch (error) {
      logger.error({ err: error, singleton: fence.singleton }, 'cluster.mirror.fence_failed');
    }
  }
}
