import type { Clock } from '../../../core/kernel/clock.ts';
import { version as release } from '../../../core/kernel/version.ts';
import { ClusterError } from '../errors.ts';
import type { LinearStream } from '../nats/stream.ts';
import { StreamGone, StreamUnknown } from '../nats/stream-errors.ts';
import { PROTOCOL } from './body.ts';
import { encodeShared, type SharedContent, type SharedOrder } from './shared-order.ts';

/** Of one lane. */
const MOST_WAITING = 1_000;
/** States of actors that may be on their way; which of them is stored first is of no account. */
export const STATES_AT_ONCE = 128;
/** Of one attempt; the next one has the same id and the same bytes. */
const ATTEMPT_MS = 1_000;
const PAUSE_MS = 100;

/** Messages of which one does not wait for those of another lane. */
interface Lane {
  /** In the order of the calls; those that are stored already wait for their delivery. */
  readonly items: Set<Waiting>;
  /** How many may be on their way. */
  readonly atOnce: number;
  underWay: number;
}

interface Waiting {
  readonly id: string;
  readonly content: SharedContent;
  readonly lane: Lane;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly cancel: () => void;
  /** How often it was written anew, because it came too late. */
  version: number;
  bytes?: Buffer | undefined;
  state: 'waiting' | 'unknown' | 'stored' | 'delivered';
  isUnderWay: boolean;
}

export interface OutgoingOptions {
  readonly clock: Clock;
  readonly host: string;
  /** What this host knows of the stream. */
  readonly order: SharedOrder;
  /** The stream, once this host knows that it is the one that it has read. */
  readonly stream: () => LinearStream | undefined;
  /** Reads on at once. */
  readonly onStored: () => void;
  /** Compares the stream with what is known of it. */
  readonly onDoubt: () => void;
  /** How long a message may take until this host has delivered it, milliseconds. */
  readonly withinMs: number;
}

/**
 * What this host has to say to every host. Messages of one topic are stored one after the other, so that they keep their order; those of
 * another topic do not wait for them, e.g. a revocation for slices of limits. States are stored many at once.
 */
export class Outgoing {
  readonly #options: OutgoingOptions;
  readonly #waiting = new Map<string, Waiting>();
  readonly #lanes = new Map<string, Lane>();
  #isConfirming = false;
  #isStopped = false;
  readonly #pauses = new Set<() => void>();

  constructor(options: OutgoingOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /**
   * @param id a repetition of the same id is delivered once
   * @returns when this host has delivered it
   * @throws HF_CLUSTER_ISOLATED, HF_CLUSTER_BUSY, HF_CLUSTER_MESSAGE_SIZE
   */
  async send(id: string, content: SharedContent): Promise<void> {
    const { clock, withinMs } = this.#options;
    if (this.#isStopped) throw isolated(id, 0, 'waiting');
    const lane = this.#laneOf(content);
    if (lane.items.size >= MOST_WAITING)
      throw new ClusterError('HF_CLUSTER_BUSY', { stream: 'of messages to every host', most: MOST_WAITING });
    this.#encode(id, content);
    return new Promise((resolve, reject) => {
      const cancel = clock.after(withinMs, () => this.#fail(id, withinMs));
      const begin = { version: 0, state: 'waiting', isUnderWay: false } as const;
      const item: Waiting = { id, content, lane, resolve, reject, cancel, ...begin };
      this.#waiting.set(id, item);
      lane.items.add(item);
      this.#drain(lane);
    });
  }

  #laneOf(content: SharedContent): Lane {
    const { kind } = content;
    const name = kind === 'message' ? `message ${content.topic}` : kind;
    const atOnce = kind === 'state' ? STATES_AT_ONCE : 1;
    const lane = this.#lanes.get(name) ?? { items: new Set(), atOnce, underWay: 0 };
    this.#lanes.set(name, lane);
    return lane;
  }

  /** This host has delivered it. */
  delivered(id: string): void {
    const item = this.#waiting.get(id);
    if (!item) return;
    item.state = 'delivered';
    void this.#confirm();
  }

  /** Every host has dropped it, because it came too late on its stream: it is written anew. */
  late(id: string): void {
    const item = this.#waiting.get(id);
    if (!item) return;
    this.#renew(item);
    this.#drain(item.lane);
  }

  /** The stream is another one, or has lost messages: what was stored and not delivered yet is written anew. */
  again(): void {
    for (const item of [...this.#waiting.values()]) this.#rewrite(item);
    for (const lane of this.#lanes.values()) this.#drain(lane);
  }

  /** That all was sent holds only where that stands before it. */
  #rewrite(item: Waiting): void {
    if (item.content.kind === 'sent') this.#fail(item.id, 0);
    else this.#renew(item);
  }

  #renew(item: Waiting): void {
    item.version += 1;
    item.bytes = undefined;
    item.state = 'waiting';
  }

  /** The stream can be written to, or is another one. */
  wake(): void {
    for (const end of [...this.#pauses]) end();
  }

  stop(): void {
    this.#isStopped = true;
    for (const id of [...this.#waiting.keys()]) this.#fail(id, 0);
    this.wake();
  }

  #fail(id: string, ms: number): void {
    const item = this.#waiting.get(id);
    if (!item) return;
    this.#forget(item);
    item.reject(isolated(id, ms, item.state));
  }

  #forget(item: Waiting): void {
    this.#waiting.delete(item.id);
    item.lane.items.delete(item);
    item.cancel();
  }

  #drain(lane: Lane): void {
    const atOnce = this.#options.stream() ? lane.atOnce : 1;
    while (lane.underWay < atOnce) {
      const next = lane.items.values().find(isOpen);
      if (!next) return;
      next.isUnderWay = true;
      lane.underWay += 1;
      void this.#attempt(next).finally(() => {
        next.isUnderWay = false;
        lane.underWay -= 1;
        this.#drain(lane);
      });
    }
  }

  /** Never rejects. */
  async #attempt(item: Waiting): Promise<void> {
    const stream = this.#options.stream();
    if (!stream) return this.#pause();
    const { version } = item;
    const before = item.state;
    // Whoever gives up meanwhile does not know whether it was stored.
    item.state = 'unknown';
    try {
      item.bytes ??= this.#encode(item.id, item.content);
      await stream.append(item.bytes, { id: `${item.id}.${version}`, timeoutMs: ATTEMPT_MS });
      if (item.version === version && item.state === 'unknown') item.state = 'stored';
      this.#options.onStored();
    } catch (error) {
      const isOurs = item.version === version && item.state === 'unknown';
      if (!(error instanceof StreamUnknown) && isOurs) item.state = before;
      // On the next stream of this name the old bytes count for nobody.
      if (error instanceof StreamGone && isOurs) this.#rewrite(item);
      await this.#pause();
    }
  }

  /**
   * A stream that was made anew takes what was written for the old one, and other hosts drop it there. So a message counts when the
   * stream is still the same after it was delivered.
   */
  async #confirm(): Promise<void> {
    if (this.#isConfirming) return;
    this.#isConfirming = true;
    for (let items = this.#delivered(); items.length > 0; items = this.#delivered()) {
      const versions = new Map(items.map((item) => [item, item.version]));
      if (!(await this.#isSame())) await this.#pause();
      else
        for (const item of items) {
          if (item.version !== versions.get(item) || !this.#waiting.has(item.id)) continue;
          this.#forget(item);
          item.resolve();
        }
    }
    this.#isConfirming = false;
  }

  #delivered(): Waiting[] {
    return this.#waiting
      .values()
      .filter(({ state }) => state === 'delivered')
      .toArray();
  }

  async #isSame(): Promise<boolean> {
    const stream = this.#options.stream();
    try {
      return stream !== undefined && (await stream.last()) !== undefined;
    } catch {
      this.#options.onDoubt();
      return false;
    }
  }

  #encode(id: string, content: SharedContent): Buffer {
    const { order, host, stream } = this.#options;
    const known = stream();
    const seq = Math.max(order.seq, known?.incarnation === order.incarnation ? known.seen : 0);
    const seen = { incarnation: order.incarnation, seq, epoch: order.epoch };
    return encodeShared({ ...content, protocol: PROTOCOL, version: release, id, from: host, seen });
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(PAUSE_MS, () => wake());
      const wake = () => {
        cancel();
        this.#pauses.delete(wake);
        resolve();
      };
      this.#pauses.add(wake);
    });
  }
}

function isOpen({ state, isUnderWay }: Waiting): boolean {
  return !isUnderWay && (state === 'waiting' || state === 'unknown');
}

const OUTCOMES = {
  waiting: 'it was not sent',
  unknown: 'it may be stored and still arrive',
  stored: 'it is stored and will arrive',
  delivered: 'this host has it, and the others will',
};

function isolated(id: string, ms: number, state: Waiting['state']): Error {
  return new ClusterError('HF_CLUSTER_ISOLATED', { id, ms, outcome: OUTCOMES[state] });
}
