import type { Bus } from '../../../bus/bus.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { Clock } from '../../kernel/clock.ts';
import { jumpsOf, timeByPresentClock } from '../../kernel/clock-jumps.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import { CLOCK } from '../../kernel/log/record.ts';
import { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import { HostError } from '../errors/host-error.ts';
import type { Logger } from '../logging/logger.ts';
import { RecurringWork } from '../recurring-work.ts';
import { archiveDeleted, recordsArchived } from './actor.ts';
import { type ArchiveFile, archivesIn, beyondLimit, deleteArchive } from './archive-files.ts';
import type { RetentionContext } from './machine.ts';
import type { PruneRequest } from './plan.ts';
import { pruneRunning } from './prune-running.ts';
import { RETENTION, retentionOf } from './records.ts';
import { freeOn } from './reserve.ts';
import { type RetentionSettings, USUAL_RESERVE_BYTES } from './settings.ts';

/** The start has enough to do; after it, each look costs a millisecond. */
const FIRST_MS = 60_000;
const EVERY_MS = 60_000;
/** A look that failed is tried again later, so that a full disk is not written to all the time. */
const RETRY_MS = 3_600_000;

/** One archive holds at most so many bytes of the live log: it is read and deleted as a whole. */
const ARCHIVE_BYTES = 64 * 2 ** 20;

/** With less free on the disk, what is needed elsewhere goes, too. */
const LEAST_FREE_BYTES = 3 * USUAL_RESERVE_BYTES;

const DAY_MS = 86_400_000;
/** More goes than must, so that records go by the thousand, not one by one. */
const SPARE_SIZE = 0.1;
const SPARE_AGE = 0.1;

interface Services {
  readonly log: EventLog;
  readonly bus: Bus;
  readonly actors: ActorSystem;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly dataDir: string;
}

/**
 * Keeps a running log within its limits: it archives the oldest records, deletes them from the live log, and deletes the
 * oldest archives. Each step is recorded before it is irrevocable. A failure is logged and tried again an hour later;
 * nothing is lost by it.
 */
export class AutomaticRetention {
  readonly #services: Services;
  readonly #settings: RetentionSettings;
  readonly #archiveBytes: number;
  readonly #leastFreeBytes: number;
  readonly #work: RecurringWork<void>;
  #problem: string | undefined;

  /**
   * @param archiveBytes of the live log in one archive, about
   * @param leastFreeBytes on the disk, for records that are needed elsewhere to be kept
   */
  constructor(
    services: Services,
    settings: RetentionSettings,
    archiveBytes: number = ARCHIVE_BYTES,
    leastFreeBytes: number = LEAST_FREE_BYTES,
  ) {
    this.#leastFreeBytes = leastFreeBytes;
    this.#services = services;
    this.#settings = settings;
    this.#archiveBytes = archiveBytes;
    const { clock, logger } = services;
    this.#work = new RecurringWork({
      ...{ clock, firstMs: FIRST_MS, everyMs: EVERY_MS, retryMs: () => RETRY_MS },
      work: async (signal) => {
        await this.#keepLimits(signal);
        this.#problem = undefined;
      },
      onFailure: (error) => {
        const code = isCoded(error) ? error.code : 'HF_INTERNAL';
        const problem = error instanceof Error ? error.message : String(error);
        // A log that was repaired is refused for as long as it lives: said once, and told by the health page.
        if (problem !== this.#problem) logger.error({ code, err: error }, 'log.prune_failed');
        this.#problem = problem;
      },
    });
  }

  /** Archives and deletes what the limits let go now, or waits for what is under way. @throws what `pruneRunning` throws */
  run(): Promise<void> {
    return this.#work.run();
  }

  /** Ends what is under way, and begins nothing new. */
  stop(): Promise<void> {
    return this.#work.stop();
  }

  /** Why the newest look archived nothing; undefined when it could, and before the first. */
  get problem(): string | undefined {
    return this.#problem;
  }

  async #keepLimits(signal: AbortSignal): Promise<void> {
    // First what makes room on a full disk; then after each archive, so that the limit holds all the time.
    await this.#deleteArchives(signal);
    await this.#lookAtClock();
    for (let request = this.#wanted(); request && !signal.aborted; request = this.#wanted()) {
      if (!(await this.#archive(request, signal))) return;
      await this.#deleteArchives(signal);
    }
  }

  /** A clock that has just been set must not make records look old: the plan reads from the log how it was set. */
  async #lookAtClock(): Promise<void> {
    const { actors, log } = this.#services;
    const before = log.lastSeq();
    actors.lookAtClock();
    if (log.lastSeq() !== before) await log.whenDurable(log.lastSeq());
  }

  async #deleteArchives(signal: AbortSignal): Promise<void> {
    const { folder, keepArchiveBytes = Number.POSITIVE_INFINITY } = this.#settings;
    for (const archive of beyondLimit(archivesIn(folder), keepArchiveBytes)) {
      if (signal.aborted) return;
      // Recorded first: an archive that is gone without a record would look like damage. After a kill it is recorded.
      if (this.#remembered().deleted?.file !== archive.name) await this.#record('deleted', archive);
      deleteArchive(archive);
      const { from, to, file } = archive;
      this.#services.logger.info({ from, to, file }, 'log.archive_deleted');
    }
  }

  /** What must go from the live log now; undefined while it keeps its limits. */
  #wanted(): PruneRequest | undefined {
    const { dataDir, clock, actors } = this.#services;
    const keepFrom = this.#keptFrom();
    const { keepBytes, olderThanMs } = this.#settings;
    const reader = new SqliteReader(dataDir);
    try {
      const [first, last] = [reader.firstSeq(), reader.lastSeq()];
      if (first === 0 || last <= first || keepFrom <= first) return undefined;
      const bySize = keepBytes !== undefined && reader.usedBytes() > keepBytes;
      const jumps = jumpsOf(actors.snapshot(CLOCK.actor));
      const age = clock.now() - timeByPresentClock(reader.record(first).at, first, jumps);
      const byAge = olderThanMs !== undefined && age > olderThanMs;
      if (!bySize && !byAge) return undefined;
      return {
        keepBytes: bySize ? Math.floor(keepBytes * (1 - SPARE_SIZE)) : undefined,
        olderThanMs: byAge ? olderThanMs - Math.min(DAY_MS, olderThanMs * SPARE_AGE) : undefined,
        mostBytes: this.#archiveBytes,
        keepFrom,
        openStays: false,
      };
    } finally {
      reader.close();
    }
  }

  /** What somebody still needs is kept, until the disk is nearly full: then the log itself comes first. */
  #keptFrom(): number {
    const { log, dataDir, logger } = this.#services;
    const keptFrom = log.keptFrom();
    if (keptFrom > log.lastSeq() || freeOn(dataDir) >= this.#leastFreeBytes) return keptFrom;
    logger.error({ from: keptFrom }, 'log.needed_records_pruned');
    return Number.POSITIVE_INFINITY;
  }

  /** @returns whether anything went */
  async #archive(request: PruneRequest, signal: AbortSignal): Promise<boolean> {
    const { log, clock, logger, dataDir } = this.#services;
    const job = { dataDir, request, folder: this.#settings.folder, now: clock.now() };
    const { plan, file } = await pruneRunning(log, job, {
      onArchived: (made) => this.#recordArchived(made),
      signal,
    });
    if (file === undefined) return false;
    logger.info({ from: plan.from, to: plan.to, file }, 'log.pruned');
    return true;
  }

  async #recordArchived(path: string): Promise<void> {
    const made = archivesIn(this.#settings.folder).find(({ file }) => file === path);
    if (!made) throw new HostError('HF_LOG_ARCHIVE', { reason: `${path} is gone` });
    // After a kill before the deletion the archive is the same one, and recorded.
    if (this.#remembered().archived?.file !== made.name) await this.#record('archived', made);
  }

  /** @throws HF_LOG_ARCHIVE the step could not be recorded: then it must not go on */
  async #record(step: keyof RetentionContext, { name: file, from, to, bytes }: ArchiveFile): Promise<void> {
    const { bus, log } = this.#services;
    bus.publish(step === 'archived' ? recordsArchived : archiveDeleted, { file, from, to, bytes });
    if (this.#remembered()[step]?.file !== file)
      throw new HostError('HF_LOG_ARCHIVE', { reason: 'the log takes no records' });
    await log.whenDurable(log.lastSeq());
  }

  #remembered(): RetentionContext {
    return retentionOf(this.#services.actors.snapshot(RETENTION));
  }
}
