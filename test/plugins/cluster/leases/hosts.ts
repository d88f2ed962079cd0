import type { Lease } from '../../../../src/core/contracts/cluster.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import type { Clock } from '../../../../src/core/kernel/clock.ts';
import { Leases, type LeasesOptions } from '../../../../src/plugins/cluster/leases/leases.ts';
import { newIncarnation } from '../../../../src/plugins/cluster/leases/ledger.ts';
import type { LedgerLog, LedgerRead } from '../../../../src/plugins/cluster/leases/ledger-reader.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';

interface Reach extends LedgerLog {
  isCut: boolean;
  /** Messages are stored, and neither an answer nor a hint comes back. */
  losesAnswers: boolean;
  /** What a read throws. */
  refusal?: Error | undefined;
}

/** A stream in memory that several hosts share. */
export class MemoryLedger {
  #replaced = 0;
  incarnation = newIncarnation(1_000, 'r0');
  #first = 1;
  /** Undefined: of a stranger. */
  bodies: (Buffer | undefined)[] = [];
  readonly #hints = new Set<() => void>();

  /** What one host sees of it. */
  reach(): Reach {
    const reach: Reach = {
      isCut: false,
      losesAnswers: false,
      read: async (from: number): Promise<LedgerRead> => {
        await Promise.resolve();
        if (reach.isCut) throw new Error('cut off');
        if (reach.refusal) throw reach.refusal;
        const first = this.#first;
        const last = first + this.bodies.length - 1;
        const start = Math.max(from, first);
        const bodies = this.bodies.slice(start - first, start - first + 7);
        const entries = bodies.map((body, index) => ({ seq: start + index, body }));
        return { incarnation: this.incarnation, first, last, entries };
      },
      append: async (body: Buffer, after: number, incarnation: string): Promise<number | undefined> => {
        await Promise.resolve();
        if (reach.isCut || incarnation !== this.incarnation) throw new Error('cut off');
        if (after !== this.#first + this.bodies.length - 1) return undefined;
        this.bodies.push(body);
        if (reach.losesAnswers) throw new Error('no answer');
        for (const hint of this.#hints) hint();
        return after + 1;
      },
      onHint: (listener: () => void): (() => void) => {
        this.#hints.add(listener);
        return () => this.#hints.delete(listener);
      },
    };
    return reach;
  }

  /** Somebody deleted it and it was made again. */
  replace(): void {
    this.#replaced += 1;
    this.incarnation = newIncarnation(1_000 + this.#replaced, `r${this.#replaced}`);
    this.#first = 1;
    this.bodies = [];
  }

  /** The oldest messages make room. */
  discard(count: number): void {
    this.bodies = this.bodies.slice(count);
    this.#first += count;
  }
}

/** A clock of a machine that can be suspended. */
export class SuspendableClock extends VirtualClock {
  #suspendedMs = 0;

  override sinceBoot(): { readonly boot: string; readonly ms: number } {
    return { boot: 'b', ms: this.monotonic() + this.#suspendedMs };
  }

  suspend(ms: number): void {
    this.#suspendedMs += ms;
    this.set(ms); // the wall clock goes on
  }
}

export interface TestHost {
  readonly leases: Leases;
  readonly log: Reach;
  /** What happened, e.g. `gained a from other`. */
  readonly story: string[];
  /** What it logged, without times. */
  readonly lines: string[];
  readonly held: Map<string, Lease>;
  begin: () => void;
  /** How work ends; at once unless set. */
  end: () => void | Promise<void>;
  /** Why it can carry out nothing. */
  obstacle: string | undefined;
}

/** A host that offers singletons and says what it gained and lost. */
export function startHost(
  clock: Clock,
  ledger: MemoryLedger,
  host: string,
  singletons: readonly string[],
  more: Partial<LeasesOptions['self']> = {},
): TestHost {
  const story: string[] = [];
  const lines: string[] = [];
  const written = (line: string) => {
    const { msg, err } = JSON.parse(line) as { msg: string; err?: { message: string } };
    lines.push(err ? `${msg}: ${err.message}` : msg);
  };
  const held = new Map<string, Lease>();
  const log = ledger.reach();
  const leases = new Leases({
    log,
    self: { host, folder: `${host}-folder`, version: '1.0.0', ttlMs: 10_000, ...more },
    clock,
    logger: createLogger({ destination: { write: written } }),
    mirror: () => ({ incarnation: '1', seq: 42 }),
    obstacle: () => one.obstacle,
    onGained: (lease, last) => {
      one.begin();
      held.set(lease.singleton, lease);
      story.push(`gained ${lease.singleton}${last ? ` from ${last.host} at ${last.mirror?.seq}` : ''}`);
    },
    onLost: (singleton, reason) => {
      held.delete(singleton);
      story.push(`lost ${singleton}: ${reason}`);
      return one.end();
    },
    onReleasing: (singleton, reason) => {
      held.delete(singleton);
      story.push(`releases ${singleton}: ${reason}`);
      return one.end();
    },
    onRefused: (refusal) =>
      story.push(refusal ? `refused by ${refusal.host}, version ${refusal.version}` : 'refused no more'),
  });
  const calls = { begin: () => {}, end: () => {} };
  const one: TestHost = { leases, log, story, lines, held, ...calls, obstacle: undefined };
  for (const singleton of singletons) leases.offer(singleton);
  leases.start();
  return one;
}
