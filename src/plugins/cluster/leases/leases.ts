import { randomBytes } from 'node:crypto';
import type { Lease } from '../../../core/contracts/cluster.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { type Change, Competitor, type Refusal, type Self } from './competitor.ts';
import { ElapsedClock } from './elapsed.ts';
import { type Holder, Ledger, type LedgerEntry, type LedgerHost } from './ledger.ts';
import type { LastHolder, LedgerMessage, MirrorPosition } from './message.ts';

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
   * Appends behind an entry of an incarnation, if that is the last one.
   *
   * @returns undefined when another one is the last
   * @throws when it is not known whether it was appended
   */
  append(body: Buffer, after: number, incarnation: string): Promise<number | undefined>;
  /** Calls back when something may have been appended. */
  onHint(listener: () => void): () => void;
}

export interface LeasesOptions {
  readonly log: LedgerLog;
  readonly self: Omit<Self, 'run'>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How far the log of this host is mirrored. */
  readonly mirror: () => MirrorPosition | undefined;
  /** @param last who held it before; absent when nobody is known to have */
  readonly onGained: (lease: Lease, last: LastHolder | undefined) => void;
  /** The work has to end at once. @returns resolves when it has: until then this host does not claim it again */
  readonly onLost: (singleton: string, reason: string) => void | Promise<void>;
  /**
   * The work is to end, and its lease is renewed until it has: what is under way may come to its end. `onLost` may follow
   * meanwhile.
   *
   * @returns resolves when it has ended
   */
  readonly onReleasing: (singleton: string, reason: string) => void | Promise<void>;
  /** Another version of the protocol is in use, or no longer. */
  readonly onRefused?: (refusal: Refusal | undefined) => void;
  /** Another process runs under the name of this host, e.g. because two machines have the same one. Called once. */
  readonly onDuplicate?: () => void;
  /** The ledger was replaced, or lost what had been acknowledged: every lease is void. */
  readonly onReplaced?: (incarnation: string, reason: string) => void;
}

/** What this host knows of one singleton. */
export interface LeaseRow {
  readonly singleton: string;
  readonly holder?: Pick<Holder, 'host' | 'run'> & { readonly token: string };
  readonly last?: LastHolder;
  /** How long this host may still act as the holder, milliseconds. */
  readonly leftMs?: number;
}

const LONGEST_POLL_MS = 500;
const RETRY_MS = 150;
/** Work that has not ended after this keeps its lease from being released: it runs out. */
const END_MS = 30_000;
/** Who releases something waits so long for the ledger to have it; the message is tried on. */
const RELEASE_MS = 2_000;

/**
 * Lets this host compete for singletons: it holds some of them, and says when it gained or lost one. Nothing is held
 * beyond its deadline, whatever the ledger says and whether it can be read or not.
 */
export class Leases {
  readonly run = randomBytes(8).toString('hex');
  readonly #options: LeasesOptions;
  readonly #elapsed: ElapsedClock;
  readonly #competitor: Competitor;
  readonly #ending = new Map<string, Promise<void>>();
  /** How often work was told to end. */
  readonly #told = new Map<string, number>();
  readonly #pollMs: number;
  #wake: () => void = () => {};
  #isWoken = false;
  #isReadDue = true;
  /** When the ledger was read last. */
  #readAt = Number.NEGATIVE_INFINITY;
  #isStopped = false;
  #loop: Promise<void> | undefined;
  #endHints: (() => void) | undefined;
  #cancelExpiry: (() => void) | undefined;
  /** Since when the ledger ends before what was read of it. */
  #behindSince: number | undefined;
  /** The last entry that a reload has read: what was forked then stays so. */
  #reloadedAt = 0;
  #isForked = false;
  #failures = 0;
  #trouble: HoldfastError | undefined;
  #refusal: Refusal | undefined;
  /** A message of this process stands in the ledger. */
  #hasSpoken = false;
  #hasDuplicate = false;
  /** Who waits for a release to be in the ledger. */
  readonly #releasing = new Set<() => void>();

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#elapsed = new ElapsedClock(options.clock);
    this.#competitor = new Competitor({ ...options.self, run: this.run });
    this.#pollMs = Math.min(LONGEST_POLL_MS, this.#competitor.beatMs);
  }

  start(): void {
    this.#endHints = this.#options.log.onHint(() => this.#stir(true));
    this.#loop = this.#turns();
  }

  /** Competes for a singleton from now on. */
  offer(singleton: string): void {
    this.#competitor.offer(singleton);
    this.#stir();
  }

  /** The lease of a singleton that this host holds now. */
  lease(singleton: string): Lease | undefined {
    this.#expire();
    const held = this.#competitor.held.find((one) => one.singleton === singleton);
    return held && this.#leaseOf(singleton, held.number);
  }

  /** Whether this host may not claim anything because of a host of another version. */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  /** Why the ledger is none that this host may compete in: it tries again. */
  get trouble(): HoldfastError | undefined {
    return this.#trouble;
  }

  get isDrained(): boolean {
    return this.#competitor.isDrained;
  }

  /**
   * Ends the work of a singleton and releases it.
   *
   * @param to the host that may claim it before others
   * @param withholdMs how long this host does not claim it again, unless it is released to it
   * @returns resolves when the ledger has it, or when the lease has run out
   */
  release(singleton: string, reason: string, to?: string, withholdMs = 0): Promise<void> {
    const waitMs = Math.max(withholdMs, 2 * this.#competitor.beatMs);
    const underWay = this.#ending.get(singleton);
    if (underWay !== undefined) return underWay;
    const ending = this.#end(singleton, reason, to, waitMs);
    this.#ending.set(singleton, ending);
    return ending.finally(() => this.#ending.delete(singleton));
  }

  /** Releases everything, and claims nothing until `undrain` or the next start. */
  async drain(reason = 'this host is drained'): Promise<void> {
    this.#competitor.drain(true);
    this.#stir();
    await Promise.all(this.#competitor.held.map(({ singleton }) => this.release(singleton, reason)));
  }

  undrain(): void {
    this.#competitor.drain(false);
    this.#stir();
  }

  /** Releases everything and ends. Without a ledger the leases run out by themselves. */
  async stop(): Promise<void> {
    await this.drain('this host stops');
    this.#isStopped = true;
    this.#endHints?.();
    this.#stir();
    await this.#loop;
    this.#cancelExpiry?.();
  }

  /** Who holds what, as far as this host has read. */
  table(): readonly LeaseRow[] {
    const { ledger } = this.#competitor;
    const now = this.#elapsed.now();
    return [...(ledger?.holdings ?? [])].map(([singleton, { holder, last }]) => {
      const deadline = this.#competitor.deadline(singleton);
      return {
        singleton,
        ...(ledger &&
          holder && { holder: { host: holder.host, run: holder.run, token: ledger.token(holder.number) } }),
        ...(last && { last }),
        ...(deadline !== undefined && { leftMs: Math.max(0, deadline - now) }),
      };
    });
  }

  /** What each host said of itself in its newest message. */
  hosts(): ReadonlyMap<string, LedgerHost> {
    return this.#competitor.ledger?.hosts ?? new Map();
  }

  #leaseOf(singleton: string, number: number): Lease {
    const competitor = this.#competitor;
    const elapsed = this.#elapsed;
    const ledger = competitor.ledger;
    return {
      singleton,
      token: ledger?.token(number) ?? '',
      deadline: () => {
        const isHeld =
          competitor.ledger === ledger &&
          competitor.held.some((one) => one.singleton === singleton && one.number === number);
        const deadline = isHeld ? competitor.deadline(singleton) : undefined;
        return deadline === undefined ? Number.NEGATIVE_INFINITY : deadline - elapsed.suspendedMs;
      },
    };
  }

  async #turns(): Promise<void> {
    while (!this.#isStopped) {
      let waitMs: number;
      try {
        await this.#turn();
        this.#failures = 0;
        this.#trouble = undefined;
        const now = this.#elapsed.now();
        waitMs = Math.min(this.#competitor.nextAt(now), this.#readAt + this.#pollMs) - now;
      } catch (error) {
        this.#failures += 1;
        this.#isReadDue = true;
        this.#note(error);
        waitMs = this.#trouble ? this.#pollMs : RETRY_MS;
      }
      await this.#pause(Math.max(1, waitMs));
    }
  }

  #note(error: unknown): void {
    const { logger } = this.#options;
    if (!isCoded(error, 'HF_CLUSTER_LEDGER')) {
      if (this.#failures === 1) logger.warn({ err: error }, 'cluster.ledger_unreachable');
      return;
    }
    if (!this.#trouble) logger.error({ err: error }, 'cluster.ledger_refused');
    this.#trouble = error;
  }

  /** Waits, until something calls for a look at the latest. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const go = () => {
        cancel();
        this.#wake = () => {};
        this.#isWoken = false;
        resolve();
      };
      const cancel = this.#options.clock.after(this.#isWoken || this.#isStopped ? 0 : ms, go);
      this.#wake = go;
    });
  }

  #stir(isReadDue = false): void {
    this.#isWoken = true;
    if (isReadDue) this.#isReadDue = true;
    this.#wake();
  }

  async #turn(): Promise<void> {
    this.#expire();
    const isStale = this.#elapsed.now() >= this.#readAt + this.#pollMs;
    if (this.#isReadDue || isStale || this.#isForked) await this.#readAll();
    const { log } = this.#options;
    for (;;) {
      this.#expire();
      this.#competitor.mirror = this.#options.mirror();
      const draft = this.#competitor.draft(this.#elapsed.now());
      const { ledger } = this.#competitor;
      if (!draft || !ledger) break;
      const body = this.#competitor.sending(draft, this.#elapsed.now());
      const seq = await log.append(body, draft.after, ledger.incarnation);
      if (seq === draft.after + 1) {
        this.#take([{ seq, body }]);
        continue;
      }
      await this.#readAll();
      // Two servers that disagree: the next look may reach the right one.
      if (this.#competitor.ledger === ledger && ledger.last === draft.after)
        throw new Error(`the ledger does not end with ${draft.after}, and shows nothing else`);
    }
    this.#refused();
  }

  async #readAll(): Promise<void> {
    this.#isReadDue = false;
    while (!(await this.#read()));
  }

  /** @returns whether the newest entry was reached */
  async #read(): Promise<boolean> {
    if (this.#isForked) {
      return this.#reload('hosts have read different messages');
    }
    const before = this.#competitor.ledger;
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
    this.#take(read.entries);
    return before.last >= read.last;
  }

  /**
   * The ledger ends before what was read of it. A leader that has lost its followers shows that for a while; when it lasts
   * for the time of a lease, the servers have lost what they had acknowledged, and the ledger counts as another one.
   */
  async #behind({ last }: LedgerRead): Promise<boolean> {
    const now = this.#elapsed.now();
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
    const { ledger } = this.#competitor;
    const opened = new Ledger(incarnation, ledger);
    if (entries.length === 0) opened.last = last; // the others were discarded
    this.#report(this.#competitor.open(opened, this.#elapsed.now(), reason));
    if (ledger) {
      this.#options.logger.warn({ incarnation, reason }, 'cluster.ledger_replaced');
      this.#call(() => this.#options.onReplaced?.(incarnation, reason));
    }
    this.#take(entries);
    return opened.last >= last;
  }

  /** Takes entries in, and sees to what follows from them. */
  #take(entries: readonly LedgerEntry[]): void {
    const { ledger } = this.#competitor;
    const changes = this.#competitor.read(entries, this.#elapsed.now(), (applied) => {
      if (typeof applied !== 'string') this.#meet(applied);
      if (applied === 'unreadable')
        this.#options.logger.warn({ seq: ledger?.last }, 'cluster.ledger_unreadable');
      if (applied !== 'forked') return;
      this.#options.logger.warn({ seq: ledger?.last }, 'cluster.ledger_forked');
      // Its sender had read other messages than this host: what is there now decides.
      if ((ledger?.last ?? 0) > this.#reloadedAt) this.#isForked = true;
    });
    this.#report(changes);
    this.#armExpiry();
    for (const resolve of this.#releasing) resolve();
    this.#releasing.clear();
    this.#readAt = this.#elapsed.now();
  }

  /** Who speaks as this host after this process has, is another process that lives. */
  #meet({ host, run }: LedgerMessage): void {
    if (host !== this.#options.self.host) return;
    if (run === this.run) this.#hasSpoken = true;
    else if (this.#hasSpoken && !this.#hasDuplicate) {
      this.#hasDuplicate = true;
      this.#options.logger.error({ host }, 'cluster.host_runs_twice');
      this.#call(() => this.#options.onDuplicate?.());
    }
  }

  #report(changes: readonly Change[]): void {
    for (const change of changes) {
      const { singleton } = change;
      if (change.type === 'lost') {
        void this.#lost(singleton, change.reason);
        continue;
      }
      const lease = this.#leaseOf(singleton, change.number);
      const isTaken = this.#call(() => this.#options.onGained(lease, change.last));
      if (!isTaken) void this.release(singleton, 'it could not begin here');
    }
  }

  /** What a callback throws stays out of the bookkeeping. @returns whether it did not throw */
  #call(callback: () => void): boolean {
    try {
      callback();
      return true;
    } catch (error) {
      this.#options.logger.error({ err: error }, 'cluster.callback_failed');
      return false;
    }
  }

  #lost(singleton: string, reason: string): Promise<void> {
    return this.#over(singleton, () => this.#options.onLost(singleton, reason));
  }

  /** Tells whoever does the work that it has to end. Resolves when it has; never rejects. */
  async #over(singleton: string, tell: () => void | Promise<void>): Promise<void> {
    const told = (this.#told.get(singleton) ?? 0) + 1;
    this.#told.set(singleton, told);
    this.#competitor.busy(singleton, true);
    try {
      await tell();
    } catch (error) {
      this.#options.logger.error({ err: error, singleton }, 'cluster.callback_failed');
    }
    // It was told once more: then that decides.
    if (this.#told.get(singleton) !== told) return;
    this.#competitor.busy(singleton, false);
    this.#stir();
  }

  async #end(singleton: string, reason: string, to: string | undefined, waitMs: number): Promise<void> {
    if (this.#competitor.deadline(singleton) === undefined) return;
    let isEnded = false;
    const releasing = () => this.#options.onReleasing(singleton, reason);
    const work = this.#over(singleton, releasing).then(() => {
      isEnded = true;
    });
    await this.#within(work, END_MS);
    if (isEnded) this.#competitor.release(singleton, to, this.#elapsed.now() + waitMs);
    else this.#competitor.abandon(singleton);
    this.#stir();
    await this.#within(this.#said(singleton), RELEASE_MS);
  }

  async #said(singleton: string): Promise<void> {
    while (this.#competitor.isReleasing(singleton)) {
      await new Promise<void>((resolve) => this.#releasing.add(resolve));
    }
  }

  /** Resolves when work has ended, or after a time. */
  #within(work: Promise<void>, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve);
      void work.finally(() => {
        cancel();
        resolve();
      });
    });
  }

  #expire(): void {
    this.#report(this.#competitor.expire(this.#elapsed.now()));
  }

  #armExpiry(): void {
    this.#cancelExpiry?.();
    this.#cancelExpiry = undefined;
    const deadlines = this.#competitor.held.map(({ singleton }) => this.#competitor.deadline(singleton) ?? 0);
    if (deadlines.length === 0) return;
    this.#cancelExpiry = this.#options.clock.after(Math.min(...deadlines) - this.#elapsed.now(), () => {
      this.#expire();
      this.#armExpiry();
    });
  }

  #refused(): void {
    const refusal = this.#competitor.refusedBy(this.#elapsed.now());
    if (refusal?.host === this.#refusal?.host && !refusal === !this.#refusal) return;
    this.#refusal = refusal;
    this.#call(() => this.#options.onRefused?.(refusal));
  }
}
