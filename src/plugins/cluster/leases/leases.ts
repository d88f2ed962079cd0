import { randomBytes } from 'node:crypto';
import type { Lease } from '../../../core/contracts/cluster.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { ElapsedClock } from '../elapsed-clock.ts';
import { ClusterError } from '../errors.ts';
import { type Change, Competitor, type Refusal, type Self } from './competitor.ts';
import type { Holder, LedgerHost } from './ledger.ts';
import { type LedgerLog, LedgerReader } from './ledger-reader.ts';
import { LedgerTrouble } from './ledger-trouble.ts';
import type { LastHolder, MirrorPosition } from './message.ts';

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
  /** Why this host can carry out nothing now, e.g. because its log takes nothing; undefined while it can. Never unless set. */
  readonly obstacle?: () => string | undefined;
  /** Another version of the protocol is in use, or no longer. */
  readonly onRefused?: (refusal: Refusal | undefined) => void;
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
/** Messages in a row, until a pause. A hundred hosts that are far apart need about as many attempts for one. */
const MOST_ATTEMPTS = 100;
/** Work that has not ended after this keeps its lease from being released: it runs out. */
const END_MS = 30_000;
/** Who releases something waits so long for the ledger to have it; the message is tried on. */
const RELEASE_MS = 2_000;
/** What passes sooner, e.g. a slow commit, costs no hand-over. */
const OBSTACLE_MS = 2_000;

/**
 * Lets this host compete for singletons: it holds some of them, and says when it gained or lost one. Nothing is held
 * beyond its deadline, whatever the ledger says and whether it can be read or not.
 */
export class Leases {
  readonly run = randomBytes(8).toString('hex');
  readonly #options: LeasesOptions;
  readonly #elapsed: ElapsedClock;
  readonly #competitor: Competitor;
  readonly #reader: LedgerReader;
  readonly #ending = new Map<string, Promise<void>>();
  /** How often work was told to end. */
  readonly #told = new Map<string, number>();
  readonly #pollMs: number;
  #wake: () => void = () => {};
  #isWoken = false;
  #isStopped = false;
  #isAbandoned = false;
  #loop: Promise<void> | undefined;
  #endHints: (() => void) | undefined;
  #cancelExpiry: (() => void) | undefined;
  readonly #trouble: LedgerTrouble;
  /** When this host was last seen able to carry out something. */
  #ableAt: number;
  #refusal: Refusal | undefined;
  /** Who waits for a release to be in the ledger. */
  readonly #releasing = new Set<() => void>();

  constructor(options: LeasesOptions) {
    this.#options = options;
    this.#elapsed = new ElapsedClock(options.clock);
    this.#ableAt = this.#elapsed.monotonic();
    this.#trouble = new LedgerTrouble(options.self.ttlMs, this.#elapsed, options);
    this.#competitor = new Competitor({ ...options.self, run: this.run });
    this.#reader = new LedgerReader({
      ...{ log: options.log, self: options.self, run: this.run, logger: options.logger },
      ...{ competitor: this.#competitor, elapsed: this.#elapsed },
      onRead: (changes) => this.#read(changes),
    });
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

  /** Whether this host may not claim anything because of a host of another version. */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  /**
   * Why this host takes nothing over: the ledger is none that it may compete in, or could be neither read nor written for a whole
   * lease. It tries again.
   */
  get trouble(): Error | undefined {
    return this.#trouble.error;
  }

  /** Why this host claims nothing, and leaves what it has to others: it can carry out nothing. */
  get obstacle(): string | undefined {
    return this.#options.obstacle?.();
  }

  /** The ledger was not read for a whole lease, or never yet: who of the others holds what is unknown. */
  get isUnread(): boolean {
    return this.#elapsed.monotonic() - this.#reader.readAt > this.#options.self.ttlMs;
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

  /** Ends all work at once and says nothing more: another process holds it, under the name and the run of this one. */
  abandon(reason: string): void {
    this.#isAbandoned = true;
    this.#competitor.drain(true);
    for (const { singleton } of this.#competitor.held) {
      this.#competitor.abandon(singleton);
      void this.#lost(singleton, reason);
    }
    this.#stir();
  }

  /** Who holds what, as far as this host has read: of all that it competes for, and that the ledger names. */
  table(): readonly LeaseRow[] {
    const { ledger, offered } = this.#competitor;
    const now = this.#elapsed.monotonic();
    const singletons = new Set([...(ledger?.holdings.keys() ?? []), ...offered]);
    return [...singletons].map((singleton) => {
      const { holder, last } = ledger?.holdings.get(singleton) ?? {};
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
    const { ledger } = competitor;
    if (!ledger) throw new Error(`${singleton} was gained without a ledger`);
    return {
      singleton,
      token: ledger.token(number),
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
    while (!this.#isStopped && !this.#isAbandoned) {
      let waitMs: number;
      try {
        await this.#turn();
        this.#trouble.passed();
        const now = this.#elapsed.monotonic();
        waitMs = Math.min(this.#competitor.nextAt(now), this.#reader.readAt + this.#pollMs) - now;
      } catch (error) {
        this.#reader.isDue = true;
        this.#trouble.note(error);
        waitMs = this.trouble ? this.#pollMs : RETRY_MS;
      }
      await this.#pause(Math.max(1, waitMs));
    }
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
    if (isReadDue) this.#reader.isDue = true;
    this.#wake();
  }

  async #turn(): Promise<void> {
    this.#expire();
    this.#yield();
    const isStale = this.#elapsed.monotonic() >= this.#reader.readAt + this.#pollMs;
    if (this.#reader.isDue || isStale) await this.#reader.readAll();
    for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
      this.#expire();
      this.#competitor.mirror = this.#options.mirror();
      const draft = this.#competitor.draft(this.#elapsed.monotonic());
      const { ledger } = this.#competitor;
      if (!draft || !ledger || this.#isAbandoned) return this.#refused();
      const body = this.#competitor.sending(draft, this.#elapsed.monotonic());
      const seq = await this.#options.log.append(body, draft.after, ledger.incarnation);
      if (seq === draft.after + 1) {
        this.#reader.take([{ seq, body }]);
        continue;
      }
      await this.#reader.readAll();
      // Two servers that disagree: the next look may reach the right one.
      if (this.#competitor.ledger === ledger && ledger.last === draft.after)
        throw new Error(`the ledger does not end with ${draft.after}, and shows nothing else`);
    }
    throw new ClusterError('HF_CLUSTER_LEDGER_BUSY', { what: 'append behind them' });
  }

  /** What this host cannot do, it leaves to others: it claims nothing from now on, and releases what it has unless that passes. */
  #yield(): void {
    const { obstacle } = this;
    const now = this.#elapsed.monotonic();
    this.#competitor.hinder(obstacle !== undefined);
    if (obstacle === undefined) this.#ableAt = now;
    if (obstacle === undefined || now - this.#ableAt < OBSTACLE_MS) return;
    for (const { singleton } of this.#competitor.held) void this.release(singleton, obstacle);
  }

  /** The ledger was read, and this follows from it. */
  #read(changes: readonly Change[]): void {
    this.#report(changes);
    this.#armExpiry();
    for (const resolve of this.#releasing) resolve();
    this.#releasing.clear();
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
    const work = this.#over(singleton, () => this.#options.onReleasing(singleton, reason));
    if (await this.#within(work, END_MS))
      this.#competitor.release(singleton, to, this.#elapsed.monotonic() + waitMs);
    else this.#competitor.abandon(singleton);
    this.#stir();
    await this.#within(this.#said(singleton), RELEASE_MS);
  }

  async #said(singleton: string): Promise<void> {
    while (this.#competitor.isReleasing(singleton)) {
      await new Promise<void>((resolve) => this.#releasing.add(resolve));
    }
  }

  /** Resolves when work has ended, or after a time. @returns whether it has ended */
  #within(work: Promise<void>, ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, () => resolve(false));
      void work.finally(() => {
        cancel();
        resolve(true);
      });
    });
  }

  #expire(): void {
    this.#report(this.#competitor.expire(this.#elapsed.monotonic()));
  }

  #armExpiry(): void {
    this.#cancelExpiry?.();
    this.#cancelExpiry = undefined;
    const deadlines = this.#competitor.held.map(({ singleton }) => this.#competitor.deadline(singleton) ?? 0);
    if (deadlines.length === 0) return;
    this.#cancelExpiry = this.#options.clock.after(Math.min(...deadlines) - this.#elapsed.monotonic(), () => {
      this.#expire();
      this.#armExpiry();
    });
  }

  #refused(): void {
    const refusal = this.#competitor.refusedBy(this.#elapsed.monotonic());
    if (refusal?.host === this.#refusal?.host && !refusal === !this.#refusal) return;
    this.#refusal = refusal;
    this.#call(() => this.#options.onRefused?.(refusal));
  }
}
