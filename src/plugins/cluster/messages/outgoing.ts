import { type Clock, newCorrelation } from '../../../core/kernel/clock.ts';
import { version as release } from '../../../core/kernel/version.ts';
import { ClusterError } from '../errors.ts';
import { LARGEST_MESSAGE, PROTOCOL } from '../nats/body.ts';
import type { LinearStream } from '../nats/stream.ts';
import { StreamGone, StreamUnknown } from '../nats/stream-errors.ts';
import {
  encodeShared,
  LAST_EPOCH,
  MOST_TOGETHER,
  type SharedBody,
  type SharedContent,
  type SharedOrder,
} from './shared-order.ts';

/** Of one queue. */
const MOST_WAITING = 1_000;
/** States of actors that may be on their way; which of them is stored first is of no account. */
export const STATES_AT_ONCE = 128;
/** Of one attempt; the next one has the same id and the same bytes. */
const ATTEMPT_MS = 1_000;
const PAUSE_MS = 100;
/** What was acknowledged and has not come back by then is sent again: whoever is in the account can acknowledge in the server's place. */
const DELIVERED_MS = 3_000;
/** What the sender knows when it writes an entry takes no more room than this: what fits now fits then. */
const LONGEST_SEEN = { incarnation: 'x'.repeat(40), seq: Number.MAX_SAFE_INTEGER, epoch: LAST_EPOCH };

/** Messages of which one does not wait for those of another queue. */
interface SendQueue {
  /** In the order of the calls; those that are stored already wait for their delivery. */
  readonly items: Set<Waiting>;
  /** How many entries may be on their way. */
  readonly atOnce: number;
  underWay: number;
}

interface Waiting {
  readonly id: string;
  readonly content: SharedContent;
  /** Of its own entry, if it had one: entries of several have less for each. */
  readonly bytes: number;
  readonly queue: SendQueue;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly cancel: () => void;
  /** What it was written into. */
  entry?: Entry | undefined;
}

/** One message of the stream: the same bytes at each attempt, whatever waits meanwhile, so that it counts once however often it is stored. */
interface Entry {
  readonly id: string;
  /** By which the server knows a repetition. */
  messageId: string;
  readonly queue: SendQueue;
  readonly items: readonly Waiting[];
  readonly bytes: Buffer;
  isUnderWay: boolean;
  state: 'waiting' | 'unknown' | 'stored' | 'delivered';
}

export interface OutgoingOptions {
  readonly clock: Clock;
  readonly host: string;
  /** What this host knows of the stream. */
  readonly order: SharedOrder;
  /** The stream, once this host knows that it is the one that it has read. */
  readonly stream: () => Pick<LinearStream, 'append' | 'last' | 'incarnation' | 'seen'> | undefined;
  /** Reads on at once. */
  readonly onStored: () => void;
  /** Compares the stream with what is known of it. */
  readonly onDoubt: () => void;
  /** How long a message may take until this host has delivered it, milliseconds. */
  readonly withinMs: number;
}

/**
 * What this host has to say to every host. Messages of one topic keep their order: while some of them are on their way to the stream, the
 * next ones wait, and go together then. Those of another topic do not wait for them, e.g. a revocation for slices of limits. States are
 * stored many at once.
 */
export class Outgoing {
  readonly #options: OutgoingOptions;
  readonly #waiting = new Set<Waiting>();
  readonly #entries = new Map<string, Entry>();
  readonly #queues = new Map<string, SendQueue>();
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
   * @returns when this host has delivered it
   * @throws HF_CLUSTER_ISOLATED, HF_CLUSTER_BUSY, HF_CLUSTER_MESSAGE_SIZE
   */
  async send(content: SharedContent): Promise<void> {
    const { clock, withinMs } = this.#options;
    const id = newCorrelation();
    if (this.#isStopped) throw isolated(id, 0, 'waiting');
    const queue = this.#queueOf(content);
    if (queue.items.size >= MOST_WAITING)
      throw new ClusterError('HF_CLUSTER_BUSY', { stream: 'of messages to every host', most: MOST_WAITING });
    const bytes = this.#encode(id, content, LONGEST_SEEN).length;
    return new Promise((resolve, reject) => {
      const cancel = clock.after(withinMs, () => this.#fail(item, withinMs));
      const item: Waiting = { id, content, bytes, queue, resolve, reject, cancel };
      this.#waiting.add(item);
      queue.items.add(item);
      this.#drain(queue);
    });
  }

  #queueOf(content: SharedContent): SendQueue {
    const { kind } = content;
    const name = kind === 'messages' ? `messages ${content.topic}` : kind;
    const atOnce = kind === 'state' ? STATES_AT_ONCE : 1;
    const queue = this.#queues.get(name) ?? { items: new Set(), atOnce, underWay: 0 };
    this.#queues.set(name, queue);
    return queue;
  }

  /** This host has delivered all of an entry. @param id of the entry */
  delivered(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    entry.state = 'delivered';
    void this.#confirm();
  }

  /** Every host has dropped an entry, because it came too late on its stream: what was in it is written anew. */
  late(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#dissolve(entry);
    this.#drain(entry.queue);
  }

  /** The stream is another one, or has lost messages: what was stored and not delivered yet is written anew. */
  again(): void {
    for (const item of [...this.#waiting]) this.#rewrite(item);
    for (const queue of this.#queues.values()) this.#drain(queue);
  }

  /** That all was sent holds only where that stands before it. */
  #rewrite(item: Waiting): void {
    if (item.content.kind === 'sent') this.#fail(item, 0);
    else if (item.entry) this.#dissolve(item.entry);
  }

  /** It counts for nobody: what was in it may be written together with what else waits. */
  #dissolve(entry: Entry): void {
    this.#entries.delete(entry.id);
    for (const item of entry.items) item.entry = undefined;
  }

  /** The stream can be written to, or is another one. */
  wake(): void {
    for (const end of [...this.#pauses]) end();
  }

  stop(): void {
    this.#isStopped = true;
    for (const item of [...this.#waiting]) this.#fail(item, 0);
    this.wake();
  }

  #fail(item: Waiting, ms: number): void {
    if (!this.#waiting.has(item)) return;
    this.#forget(item);
    item.reject(isolated(item.id, ms, item.entry?.state ?? 'waiting'));
  }

  #forget(item: Waiting): void {
    const { entry, queue, cancel } = item;
    this.#waiting.delete(item);
    queue.items.delete(item);
    cancel();
    if (entry?.items.every((one) => !this.#waiting.has(one))) this.#entries.delete(entry.id);
  }

  #drain(queue: SendQueue): void {
    const atOnce = this.#options.stream() ? queue.atOnce : 1;
    while (queue.underWay < atOnce) {
      const next = queue.items.values().find(isOpen);
      if (!next) return;
      queue.underWay += 1;
      void this.#attempt(next).finally(() => {
        queue.underWay -= 1;
        this.#drain(queue);
      });
    }
  }

  /** Never rejects. */
  async #attempt(next: Waiting): Promise<void> {
    const stream = this.#options.stream();
    if (!stream) return this.#pause();
    const entry = next.entry ?? this.#write(next);
    const { items, state: before } = entry;
    const isUnknown = () => this.#entries.has(entry.id) && entry.state === 'unknown';
    // Whoever gives up meanwhile does not know whether it was stored.
    entry.state = 'unknown';
    entry.isUnderWay = true;
    try {
      await stream.append(entry.bytes, { id: entry.messageId, timeoutMs: ATTEMPT_MS });
      if (isUnknown()) {
        entry.state = 'stored';
        this.#doubtLater(entry);
      }
      this.#options.onStored();
    } catch (error) {
      if (isUnknown()) {
        if (!(error instanceof StreamUnknown)) entry.state = before;
        // On the next stream of this name the old bytes count for nobody.
        if (error instanceof StreamGone) for (const item of items) this.#rewrite(item);
      }
      await this.#pause();
    }
    entry.isUnderWay = false;
  }

  #doubtLater(entry: Entry): void {
    this.#options.clock.after(DELIVERED_MS, () => this.#doubt(entry));
  }

  #doubt(entry: Entry): void {
    if (this.#isStopped || !this.#entries.has(entry.id) || entry.state !== 'stored') return;
    const { order, stream } = this.#options;
    // It may be among what this host has yet to read: on a slow link a second copy would be one more.
    if ((stream()?.seen ?? 0) > order.seq) {
      this.#doubtLater(entry);
      return;
    }
    entry.state = 'unknown';
    // Somebody may have taken the id before: then the server would acknowledge the message and not store it again. Readers count it once by its own.
    entry.messageId = newCorrelation();
    this.#drain(entry.queue);
  }

  /** Writes what waits in a queue into one entry, as much as fits, from its first one on. */
  #write(first: Waiting): Entry {
    const id = newCorrelation();
    const items = this.#together(first);
    const bytes = this.#encode(id, joined(first.content, items), this.#seen());
    const entry: Entry = {
      id,
      messageId: id,
      queue: first.queue,
      items,
      bytes,
      isUnderWay: false,
      state: 'waiting',
    };
    for (const item of items) item.entry = entry;
    this.#entries.set(id, entry);
    return entry;
  }

  #together(first: Waiting): readonly Waiting[] {
    if (first.content.kind !== 'messages') return [first];
    return together(first.queue.items.values().filter(({ entry }) => !entry));
  }

  /**
   * A stream that was made anew takes what was written for the old one, and other hosts drop it there. So a message counts when the
   * stream is still the same after it was delivered.
   */
  async #confirm(): Promise<void> {
    if (this.#isConfirming) return;
    this.#isConfirming = true;
    for (let entries = this.#delivered(); entries.length > 0; entries = this.#delivered()) {
      if (!(await this.#isSame())) await this.#pause();
      else
        for (const { id, items } of entries) {
          if (!this.#entries.has(id)) continue;
          for (const item of items) {
            if (!this.#waiting.has(item)) continue;
            this.#forget(item);
            item.resolve();
          }
        }
    }
    this.#isConfirming = false;
  }

  #delivered(): Entry[] {
    return this.#entries
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

  #seen(): SharedBody['seen'] {
    const { order, stream } = this.#options;
    const known = stream();
    const seq = Math.max(order.seq, known?.incarnation === order.incarnation ? known.seen : 0);
    return { incarnation: order.incarnation, seq, epoch: order.epoch };
  }

  #encode(id: string, content: SharedContent, seen: SharedBody['seen']): Buffer {
    const { host } = this.#options;
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

/** @returns the first of some messages that wait, as many as go together: at most 64, with the sizes that they have alone at most 64 KiB, at least one */
export function together<T extends { readonly bytes: number }>(waiting: Iterable<T>): readonly T[] {
  const items: T[] = [];
  let bytes = 0;
  for (const item of waiting) {
    bytes += item.bytes;
    if (items.length === MOST_TOGETHER || (items.length > 0 && bytes > LARGEST_MESSAGE)) break;
    items.push(item);
  }
  return items;
}

function isOpen({ entry }: Waiting): boolean {
  return !entry || (!entry.isUnderWay && (entry.state === 'waiting' || entry.state === 'unknown'));
}

function joined(first: SharedContent, items: readonly Waiting[]): SharedContent {
  if (first.kind !== 'messages') return first;
  const messages = items.flatMap(({ content }) => (content.kind === 'messages' ? content.messages : []));
  return { ...first, messages };
}

const OUTCOMES = {
  waiting: 'it was not sent',
  unknown: 'it may be stored and still arrive',
  stored: 'it was acknowledged, and may still arrive',
  delivered: 'this host has it, and the others will',
};

function isolated(id: string, ms: number, state: keyof typeof OUTCOMES): Error {
  return new ClusterError('HF_CLUSTER_ISOLATED', { id, ms, outcome: OUTCOMES[state] });
}
