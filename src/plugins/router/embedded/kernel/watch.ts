import type { Logger } from 'pino';
import { concatMap, merge, Subject, type Subscription } from 'rxjs';
import type { Clock } from '../../../../core/kernel/clock.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import type { Snapshot } from './linux-snapshot.ts';
import { type KernelChange, parseMonitorLine } from './monitor-lines.ts';
import { bursts, whenListening } from './netlink-monitor.ts';
import { ReceivedPrefixes } from './received-prefixes.ts';
import { SupervisedChild } from './supervised-child.ts';

export interface KernelWatchOptions {
  /** A namespace by its name; this process's own without one. */
  readonly namespace?: string | undefined;
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  /** Reads links, addresses and routes as they are. */
  readonly read: () => Promise<Snapshot>;
  /** Gets what was read after a change, and after a start. */
  readonly onChange: (now: Snapshot) => Promise<void>;
}

/** A change has ended when the kernel has announced nothing for this long … */
const QUIET_MS = 300;
/** … and is looked at after this time even if it has not. */
const LONGEST_MS = 2_000;
/** Until a reading that failed is tried again. */
const RETRY_MS = 5_000;

/**
 * Watches the kernel with one long-lived `ip monitor`. Its lines say that something changed; what it is now is read from the
 * kernel when the burst has ended, because the kernel does not announce everything (it removes IPv4 routes of a device
 * without a word). Lines that repeat what is known, such as renewed lifetimes, cause no reading.
 */
export class KernelWatch {
  readonly #options: KernelWatchOptions;
  readonly #child: SupervisedChild;
  /** Prefixes of advertisements that the kernel accepted. */
  readonly received: ReceivedPrefixes;
  /** The kernel announced a change. */
  readonly #changes = new Subject<void>();
  /** It is to be read without waiting for the end of a burst. */
  readonly #due = new Subject<void>();
  readonly #readings: Subscription;
  #cancelRetry = () => {};
  #lastRead: WatchedState | undefined;
  /** Something was announced since the newest reading began. */
  #isStale = false;
  /** What was read last, as far as nothing was announced since. */
  #current: Snapshot | undefined;

  constructor(options: KernelWatchOptions) {
    const { namespace, clock, logger } = options;
    this.#options = options;
    this.received = new ReceivedPrefixes(clock);
    this.#readings = merge(this.#changes.pipe(bursts(clock, QUIET_MS, LONGEST_MS)), this.#due)
      .pipe(concatMap(() => this.#read()))
      .subscribe();
    const inside = namespace === undefined ? [] : ['-netns', namespace];
    this.#child = new SupervisedChild({
      program: 'ip',
      args: [...inside, '-oneline', 'monitor', 'label', 'link', 'address', 'route', 'prefix'],
      clock,
      onLine: (line, stream) => (stream === 'stderr' ? this.#missed(line) : this.#follow(line)),
      onUp: (pid) => void this.#takeUp(pid),
      onEnd: (reason, failures) => {
        this.#markStale();
        logger.warn({ reason, failures }, 'router.kernel_watch_ended');
      },
    });
  }

  start(): void {
    this.#child.start();
  }

  async stop(): Promise<void> {
    this.#markStale();
    this.#readings.unsubscribe();
    this.#cancelRetry();
    await this.#child.stop();
  }

  /**
   * What the kernel has now, without asking it: what was read last, if nothing was announced since.
   *
   * @returns undefined while that is not known
   */
  current(): Snapshot | undefined {
    return this.#child.pid === undefined ? undefined : this.#current;
  }

  report(): JsonObject {
    return this.#child.report();
  }

  /** What changed before it listened was announced to nobody, so everything is read once it does. */
  async #takeUp(pid: number): Promise<void> {
    if (!(await whenListening(pid, () => this.#child.pid === pid))) return;
    this.#options.logger.info({ pid }, 'router.kernel_watched');
    this.#due.next();
  }

  /** The kernel dropped messages because `ip` did not read fast enough. */
  #missed(line: string): void {
    this.#options.logger.warn({ line }, 'router.kernel_watch_missed');
    this.#announced();
  }

  #follow(line: string): void {
    const notice = parseMonitorLine(line);
    if (notice === undefined) return;
    if (notice.kind === 'advertisement') this.received.add(notice);
    else if (this.#lastRead === undefined || isNews(notice, this.#lastRead)) this.#announced();
  }

  #announced(): void {
    this.#markStale();
    this.#changes.next();
  }

  #markStale(): void {
    this.#isStale = true;
    this.#current = undefined;
  }

  async #read(): Promise<void> {
    const { clock, logger, read, onChange } = this.#options;
    this.#cancelRetry();
    this.#isStale = false;
    try {
      const now = await read();
      this.#lastRead = watchedStateOf(now);
      if (!this.#isStale) this.#current = now;
      await onChange(now);
    } catch (error) {
      // Nothing more may ever be announced, so it is tried again.
      logger.warn({ err: error }, 'router.kernel_unread');
      this.#lastRead = undefined;
      this.#cancelRetry = clock.after(RETRY_MS, () => this.#due.next());
    }
  }
}

/** What of a reading announcements are compared with, to tell news from repetitions. */
interface WatchedState {
  readonly running: ReadonlyMap<string, boolean>;
  /** `<interface> <address>`. */
  readonly addresses: ReadonlySet<string>;
  readonly defaults: ReadonlySet<string>;
  readonly delegated: ReadonlySet<string>;
}

function watchedStateOf({ links, routes, delegated }: Snapshot): WatchedState {
  const all = [...links.values()];
  return {
    running: new Map(all.map(({ name, running }) => [name, running === true])),
    addresses: new Set(
      all.flatMap(({ name, addresses }) => addresses.map(({ address }) => `${name} ${address}`)),
    ),
    defaults: new Set(
      routes.flatMap(({ destination, devices }) => (destination === 'default' ? devices : [])),
    ),
    delegated: new Set(delegated),
  };
}

/** Whether an announcement differs from what was read last. */
function isNews(notice: KernelChange, last: WatchedState): boolean {
  switch (notice.kind) {
    case 'link':
      return last.running.get(notice.intf) !== notice.running;
    case 'address':
      return last.addresses.has(`${notice.intf} ${notice.address}`) === notice.removed;
    case 'default route':
      return last.defaults.has(notice.intf) === notice.removed;
    case 'delegation':
      return last.delegated.has(notice.prefix) === notice.removed;
  }
}
