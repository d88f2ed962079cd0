import { readdir, readFile, readlink } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Clock } from '../../../../core/kernel/clock.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import type { Snapshot } from './linux-snapshot.ts';
import { type KernelChange, parseMonitorLine } from './monitor-lines.ts';
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
/** Until `ip` listens, in real time. */
const LISTENS_WITHIN_MS = 2_000;
const LISTEN_LOOK_MS = 10;

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
  #known: Known | undefined;
  #cancelQuiet: (() => void) | undefined;
  #cancelLongest: (() => void) | undefined;
  #isReading = false;
  #isDirty = false;
  #isStopped = false;
  /** What was read last, as far as nothing was announced since. */
  #current: Snapshot | undefined;

  constructor(options: KernelWatchOptions) {
    const { namespace, clock, logger } = options;
    this.#options = options;
    this.received = new ReceivedPrefixes(clock);
    const inside = namespace === undefined ? [] : ['-netns', namespace];
    this.#child = new SupervisedChild({
      program: 'ip',
      args: [...inside, '-oneline', 'monitor', 'label', 'link', 'address', 'route', 'prefix'],
      clock,
      onLine: (line, stream) => (stream === 'stderr' ? this.#missed(line) : this.#follow(line)),
      onUp: (pid) => void this.#takeUp(pid),
      onEnd: (reason, failures) => {
        this.#current = undefined;
        logger.warn({ reason, failures }, 'router.kernel_watch_ended');
      },
    });
  }

  start(): void {
    this.#child.start();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#current = undefined;
    this.#cancel();
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
    const deadline = Date.now() + LISTENS_WITHIN_MS;
    while (this.#child.pid === pid && !(await isListening(pid)) && Date.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, LISTEN_LOOK_MS));
    if (this.#child.pid !== pid) return;
    this.#options.logger.info({ pid }, 'router.kernel_watched');
    await this.#look();
  }

  /** The kernel dropped messages because `ip` did not read fast enough. */
  #missed(line: string): void {
    this.#options.logger.warn({ line }, 'router.kernel_watch_missed');
    this.#touch();
  }

  #follow(line: string): void {
    const notice = parseMonitorLine(line);
    if (notice === undefined) return;
    if (notice.kind === 'advertisement') this.received.add(notice);
    else if (this.#known === undefined || isNews(notice, this.#known)) this.#touch();
  }

  #touch(): void {
    this.#current = undefined;
    if (this.#isStopped || this.#isReading) {
      this.#isDirty = true;
      return;
    }
    const { clock } = this.#options;
    this.#cancelQuiet?.();
    this.#cancelQuiet = clock.after(QUIET_MS, () => void this.#look());
    this.#cancelLongest ??= clock.after(LONGEST_MS, () => void this.#look());
  }

  #cancel(): void {
    this.#cancelQuiet?.();
    this.#cancelLongest?.();
    this.#cancelLongest = undefined;
  }

  async #look(): Promise<void> {
    this.#cancel();
    this.#isDirty = true;
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (this.#isDirty && !this.#isStopped) {
        this.#isDirty = false;
        const now = await this.#options.read();
        this.#known = knownOf(now);
        if (!this.#isDirty) this.#current = now;
        await this.#options.onChange(now);
      }
    } catch (error) {
      // Nothing more may ever be announced, so it is tried again.
      const { clock, logger } = this.#options;
      logger.warn({ err: error }, 'router.kernel_unread');
      this.#known = undefined;
      this.#cancelLongest ??= clock.after(RETRY_MS, () => void this.#look());
    } finally {
      this.#isReading = false;
    }
  }
}

/** What was read last, to tell news from repetitions. */
interface Known {
  readonly running: ReadonlyMap<string, boolean>;
  /** `<interface> <address>`. */
  readonly addresses: ReadonlySet<string>;
  readonly defaults: ReadonlySet<string>;
  readonly delegated: ReadonlySet<string>;
}

function knownOf({ links, routes, delegated }: Snapshot): Known {
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
function isNews(notice: KernelChange, known: Known): boolean {
  switch (notice.kind) {
    case 'link':
      return known.running.get(notice.intf) !== notice.running;
    case 'address':
      return known.addresses.has(`${notice.intf} ${notice.address}`) === notice.removed;
    case 'default route':
      return known.defaults.has(notice.intf) === notice.removed;
    case 'delegation':
      return known.delegated.has(notice.prefix) === notice.removed;
  }
}

/** Whether a process has a netlink socket that belongs to a group of messages. */
async function isListening(pid: number): Promise<boolean> {
  try {
    const sockets = await readFile(`/proc/${pid}/net/netlink`, 'utf8');
    const listening = new Set(
      sockets.split('\n').flatMap((row) => {
        const columns = row.trim().split(/\s+/);
        return /^0*$/.test(columns[3] ?? '') ? [] : [`socket:[${columns.at(-1)}]`];
      }),
    );
    const folder = `/proc/${pid}/fd`;
    for (const name of await readdir(folder))
      if (listening.has(await readlink(`${folder}/${name}`))) return true;
  } catch {
    // It has ended, or belongs to another user.
  }
  return false;
}
