import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ClusterError } from '../errors.ts';
import { json, LARGEST_MESSAGE, PROTOCOL, readJson } from '../nats/body.ts';

/** A message may be stored so many places behind the newest that its sender knew; as many are remembered against repetitions. */
export const REACH = 1_024;
/** Messages of one topic that may stand at one place of the stream; each has an order of its own. */
export const MOST_TOGETHER = 64;
/** Orders of a later epoch are above all of an earlier one. 2^35 places fit into each, and 4,096 epochs into a number. */
const PLACES = 2 ** 35;
export const LAST_EPOCH = 4_095;
/** Of an actor's state, bytes. */
const LARGEST_STATE = 512 * 1024;
const DIGEST_CHARS = 16;
/** Hosts that want states at the same time. */
const MOST_ROUNDS = 200;

/** How far a host has come in the stream of messages to every host. */
export interface SharedPlace {
  /** Which stream of this name: it is another one after somebody deleted it. Empty before the first. */
  readonly incarnation: string;
  readonly seq: number;
  /** How often the numbers of the stream began again, as far as any host knows. */
  readonly epoch: number;
  /** Digests of the newest bodies up to `seq`, the last one last; empty texts where none is known. */
  readonly trail: readonly string[];
}

const text = z.string().max(300);
const seen = z.object({ incarnation: text, seq: z.int().min(0), epoch: z.int().min(0).max(LAST_EPOCH) });
/** What hosts of every protocol write. */
const identity = z.object({ protocol: z.int(), version: text, from: text.min(1) });
const sender = { ...identity.shape, id: text.min(1), seen };

const message = z.object({ payload: json, correlation: text, cause: z.int().min(0).optional() });

const bodies = z.discriminatedUnion('kind', [
  /** In the order in which they were sent. */
  z.object({
    ...sender,
    kind: z.literal('messages'),
    topic: text.min(1),
    messages: z.array(message).min(1).max(MOST_TOGETHER),
  }),
  z.object({ ...sender, kind: z.literal('state'), ref: text.min(1), state: json }),
  /** Its sender wants to know that it has read all before it. */
  z.object({ ...sender, kind: z.literal('mark') }),
  /** Its sender has missed messages: every host sends the states that it has. */
  z.object({ ...sender, kind: z.literal('wanted'), round: text.min(1) }),
  /** Its sender has sent all that it had when it had read what was wanted in these rounds. */
  z.object({ ...sender, kind: z.literal('sent'), rounds: z.array(text).max(MOST_ROUNDS) }),
]);

/** A body as hosts send it. */
export type SharedBody = z.output<typeof bodies>;
type Content<B> = B extends SharedBody ? Omit<B, 'protocol' | 'version' | 'id' | 'from' | 'seen'> : never;
/** A body without what the sender adds. */
export type SharedContent = Content<SharedBody>;

/** What stands at one place of the stream. */
export interface SharedEntry {
  readonly seq: number;
  readonly body: Uint8Array;
}

/**
 * What became of an entry. `order` = its place among all messages to every host, over all incarnations of the stream: that of the first
 * one where there are several, and each of the others is one above the one before. `late`: its sender
 * knew another stream, or too little of this one: it is an old message repeated, or was stored long after it was sent. `repeated`: it
 * stands on the stream already.
 */
export type Outcome =
  | { readonly kind: 'accepted'; readonly body: SharedBody; readonly order: number }
  | { readonly kind: 'dropped'; readonly reason: 'late' | 'repeated'; readonly id: string }
  /** A host of the cluster wrote what this version does not understand; it may be of any importance. */
  | { readonly kind: 'foreign'; readonly sender: Sender | undefined };

/** Who wrote a message, as far as it can be read. */
export interface Sender {
  readonly from: string;
  /** Of Holdfast there. */
  readonly version: string;
}

/** @returns the bytes of a body @throws HF_CLUSTER_MESSAGE_SIZE it is larger than one of its kind may be */
export function encodeShared(body: SharedBody): Buffer {
  const bytes = Buffer.from(JSON.stringify(body));
  const most = body.kind === 'state' ? LARGEST_STATE : LARGEST_MESSAGE;
  if (bytes.length <= most) return bytes;
  const topic = body.kind === 'state' ? body.ref : body.kind === 'messages' ? body.topic : body.kind;
  throw new ClusterError('HF_CLUSTER_MESSAGE_SIZE', { topic, bytes: bytes.length, most });
}

/**
 * The order of the messages to every host: a pure fold of what stands on the stream. Each host drops the same ones, because
 * nothing but the stream decides: a body counts only on the stream that its sender knew, at most `REACH` places behind what
 * the sender knew of it, and once. So nobody can have an old message delivered again by storing its bytes anew.
 */
export class SharedOrder {
  #incarnation: string;
  #seq: number;
  #epoch: number;
  #trail: string[];
  #digests: Map<string, number> = new Map();

  constructor(place: SharedPlace = { incarnation: '', seq: 0, epoch: 0, trail: [] }) {
    this.#incarnation = place.incarnation;
    this.#seq = place.seq;
    this.#epoch = place.epoch;
    this.#trail = [];
    for (const digest of place.trail) this.#remember(digest);
  }

  get place(): SharedPlace {
    return {
      incarnation: this.#incarnation,
      seq: this.#seq,
      epoch: this.#epoch,
      trail: [...this.#trail],
    };
  }

  get incarnation(): string {
    return this.#incarnation;
  }

  get seq(): number {
    return this.#seq;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** Order of the newest that was taken; 0 before the first. */
  get order(): number {
    return (this.#epoch * PLACES + this.#seq) * MOST_TOGETHER;
  }

  /** Whether what stands at a place is what this host saw there; undefined when it does not remember that place. */
  matches(entry: SharedEntry): boolean | undefined {
    const known = this.#trail.at(entry.seq - this.#seq - 1);
    const isInReach = entry.seq <= this.#seq && entry.seq > this.#seq - this.#trail.length;
    return !isInReach || !known ? undefined : known === digestOf(entry.body);
  }

  /** The places that `matches` can tell of. */
  get remembered(): { readonly first: number; readonly last: number } {
    return { first: this.#seq - this.#trail.length + 1, last: this.#seq };
  }

  /** Takes a stream for the first one of this host. */
  begin(incarnation: string): void {
    this.#incarnation = incarnation;
  }

  /**
   * The stream is another one, or its end was lost: goes on behind `seq`, with orders above all that were seen.
   *
   * @param seq the last place whose content is known to be as it was; 0 for a stream that was made anew
   */
  rewind(incarnation: string, seq: number): void {
    const kept = Math.max(0, this.#trail.length - (this.#seq - seq));
    const trail = incarnation === this.#incarnation ? this.#trail.slice(0, kept) : [];
    this.#incarnation = incarnation;
    this.#epoch += 1;
    this.#seq = seq;
    this.#trail = [];
    this.#digests = new Map();
    for (const digest of trail) this.#remember(digest);
  }

  /** Goes on behind places that are not on the stream any more. */
  skipTo(seq: number): void {
    for (const from = Math.max(this.#seq, seq - REACH); this.#seq < seq; this.#seq += 1) {
      if (this.#seq >= from) this.#remember('');
    }
  }

  /** Takes the next entry. @throws RangeError it is not the next one */
  take(entry: SharedEntry): Outcome {
    if (entry.seq !== this.#seq + 1)
      throw new RangeError(`message ${entry.seq} does not follow ${this.#seq}`);
    const digest = digestOf(entry.body);
    const isRepeated = this.#digests.has(digest);
    this.#seq = entry.seq;
    this.#remember(digest);
    const value = readJson(entry.body, LARGEST_STATE);
    const body = decode(value, entry.body.length);
    if (!body && !isRepeated) return { kind: 'foreign', sender: identity.safeParse(value).data };
    if (!body || isRepeated) return { kind: 'dropped', reason: 'repeated', id: body?.id ?? '' };
    const behind = entry.seq - body.seen.seq;
    if (body.seen.incarnation !== this.#incarnation || behind < 1 || behind > REACH)
      return { kind: 'dropped', reason: 'late', id: body.id };
    this.#epoch = Math.max(this.#epoch, body.seen.epoch);
    return { kind: 'accepted', body, order: this.order };
  }

  #remember(digest: string): void {
    this.#trail.push(digest);
    if (digest !== '') this.#digests.set(digest, (this.#digests.get(digest) ?? 0) + 1);
    if (this.#trail.length <= REACH) return;
    const oldest = this.#trail.shift() ?? '';
    const count = this.#digests.get(oldest) ?? 0;
    if (count > 1) this.#digests.set(oldest, count - 1);
    else this.#digests.delete(oldest);
  }
}

/** @returns undefined when it is no body of this version */
function decode(value: unknown, bytes: number): SharedBody | undefined {
  const body = bodies.safeParse(value).data;
  if (body?.protocol !== PROTOCOL) return undefined;
  return body.kind === 'messages' && bytes > LARGEST_MESSAGE ? undefined : body;
}

function digestOf(body: Uint8Array): string {
  return createHash('sha256').update(body).digest('base64url').slice(0, DIGEST_CHARS);
}
