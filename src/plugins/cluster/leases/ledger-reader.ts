import type { Logger } from '../../../core/host/logging/logger.ts';
import type { ElapsedClock } from '../elapsed-clock.ts';
import { ClusterError } from '../errors.ts';
import type { Change, Competitor, Self } from './competitor.ts';
import { Ledger, type LedgerEntry } from './ledger.ts';
import type { LedgerMessage } from './message.ts';

/** What was read of the ledger, as its leader had it. */
export interface LedgerRead {
  readonly incarnation: string;
  /** The oldest entry that is still there, and the newest; `last` is 0 while there is none. */
  readonly first: number;
  readonly last: number;
  /** From the wanted one, or the oldest that is there; not up to the newest when that would take long. */
  readonly entries: readonly LedgerEntry[];
}

/** The stream that the ledger is. */
export interface LedgerLog {
  /** @param from the first entry wanted, 1 for all @throws when the leader cannot be reached */
  read(from: number): Promise<LedgerRead>;
  /**
   * Appends behind an entry of an incarnation, if that is the last one, or behind at most `MOST_BETWEEN` messages after it
   * that this host has not read.
   *
   * @returns where it stands; undefined when it does not
   * @throws when it is not known whether it was appended
   */
  append(body: Buffer, after: number, incarnation: string): Promise<number | undefined>;
  /** Calls back when something may have been appended. */
  onHint(listener: () => void): () => void;
}

export interface LedgerReaderOptions {
  readonly log: LedgerLog;
  readonly self: Pick<Self, 'host' | 'ttlMs'>;
  /** Of this process. */
  readonly run: string;
  readonly competitor: Pick<Competitor, 'ledger' | 'open' | 'read'>;
  readonly elapsed: ElapsedClock;
  readonly logger: Logger;
  /** After each reading: what changed by it for this host. */
  readonly onRead: (changes: readonly Change[]) => void;
}

/** Reads the ledger for a competitor, and notices when it is another one than before, goes back, or was read differently by others. */
export class LedgerReader {
  readonly #options: LedgerReaderOptions;
  /** Something may have been appended. */
  isDue = true;
  /** When it was read last. */
  readAt = Number.NEGATIVE_INFINITY;
  /** Since when the ledger ends before what was read of it. */
  #behindSince: number | undefined;
  /** The last entry that a reload has read: what was forked then stays so. */
  #reloadedAt = 0;
  #isForked = false;
  /** A message of this process stands in the ledger. */
  #hasSpoken = false;
  #hasDuplicate = false;

  constructor(options: LedgerReaderOptions) {
    this.#options = options;
  }

  /**
   * Reads up to the newest entry.
   *
   * @throws when the leader cannot be reached, or shows less than was read before; HF_CLUSTER_LEDGER_BUSY for a whole lease
   * there were more entries each time
   */
  async readAll(): Promise<void> {
    const { elapsed, self } = this.#options;
    const end = elapsed.monotonic() + self.ttlMs;
    this.isDue = false;
    // Who claimed before it has read a forked ledger once more could do so beside a holder that it does not know.
    while (!(await this.#read()) || this.#isForked)
      if (elapsed.monotonic() > end) throw new ClusterError('HF_CLUSTER_LEDGER_BUSY', { what: 'read' });
  }

  /** @returns whether the newest entry was reached */
  async #read(): Promise<boolean> {
    if (this.#isForked) return this.#reload('hosts have read different messages');
    const { competitor } = this.#options;
    const before = competitor.ledger;
    const read = await this.#options.log.read((before?.last ?? 0) + 1);
    if (!before || before.incarnation !== read.incarnation) {
      const all = before && before.last > 0 ? await this.#options.log.read(1) : read;
      return this.#open(all, 'the ledger was replaced');
    }
    if (read.last < before.last) return this.#behind(read);
    this.#behindSince = undefined;
    const isBeyond = read.first > before.last + 1 && before.last > 0;
    if (read.last > before.last && isBeyond) {
      return this.#reload('messages are gone that this host has not read');
    }
    this.take(read.entries);
    return before.last >= read.last;
  }

  /**
   * The ledger ends before what was read of it. A leader that has lost its followers shows that for a while; when it lasts
   * for the time of a lease, the servers have lost what they had acknowledged, and the ledger counts as another one.
   */
  async #behind({ last }: LedgerRead): Promise<boolean> {
    const now = this.#options.elapsed.monotonic();
    this.#behindSince ??= now;
    if (now - this.#behindSince < this.#options.self.ttlMs) throw new Error(`the ledger ends at ${last}`);
    return this.#reload('the ledger lost messages that it had acknowledged');
  }

  async #reload(reason: string): Promise<boolean> {
    return this.#open(await this.#options.log.read(1), reason);
  }

  #open({ incarnation, entries, last }: LedgerRead, reason: string): boolean {
    this.#behindSince = undefined;
    this.#isForked = false;
    this.#hasSpoken = false;
    this.#reloadedAt = last;
    const { competitor, elapsed, logger, onRead } = this.#options;
    const { ledger } = competitor;
    const opened = new Ledger(incarnation, ledger);
    if (entries.length === 0) opened.last = last; // the others were discarded
    onRead(competitor.open(opened, elapsed.monotonic(), reason));
    if (ledger) logger.warn({ incarnation, reason }, 'cluster.ledger_replaced');
    this.take(entries);
    return opened.last >= last;
  }

  /** Takes entries in. */
  take(entries: readonly LedgerEntry[]): void {
    const { competitor, elapsed, logger, onRead } = this.#options;
    const { ledger } = competitor;
    const changes = competitor.read(entries, elapsed.monotonic(), (applied) => {
      if (typeof applied !== 'string') this.#meet(applied);
      if (applied === 'unreadable') logger.warn({ seq: ledger?.last }, 'cluster.ledger_unreadable');
      if (applied !== 'forked') return;
      logger.warn({ seq: ledger?.last }, 'cluster.ledger_forked');
      // Its sender had read other messages than this host: what is there now decides.
      if ((ledger?.last ?? 0) > this.#reloadedAt) {
        this.#isForked = true;
        this.isDue = true;
      }
    });
    onRead(changes);
    this.readAt = elapsed.monotonic();
  }

  /** Who speaks as this host after this process has, is another process that lives. */
  #meet({ host, run }: LedgerMessage): void {
    const { self, run: own, logger } = this.#options;
    if (host !== self.host) return;
    if (run === own) this.#hasSpoken = true;
    else if (this.#hasSpoken && !this.#hasDuplicate) {
      this.#hasDuplicate = true;
      logger.error({ host }, 'cluster.host_runs_twice');
    }
  }
}
