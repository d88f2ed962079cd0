// What a host's stream holds (docs/cluster.md). A message carries whole lines of the portable form, or a part of one that is
// larger than the server takes; its headers say which records.

/** Headers of a message. Hf-Mac, which seals them, is added by the stream. */
const KIND = 'Hf-Kind';
const FROM = 'Hf-From';
const TO = 'Hf-To';
const HASH = 'Hf-Hash';
const PART = 'Hf-Part';
const FENCE = 'Hf-Fence';
const LEFT = 'Hf-Left';

/**
 * `begin`: the header line, and the states before the first record where older ones were pruned. `records`: records and
 * signatures. `states`: the states of the actors of singletons after the record `to`.
 */
export type MirrorKind = 'begin' | 'records' | 'states';

/** What is appended at once: whole lines, or one part of a body that is too large for one message. */
export interface MirrorMessage {
  readonly kind: MirrorKind;
  /** The first record in it; of `begin` and `states` the first that comes after it. */
  readonly from: number;
  /** The last record in it; of `begin` and `states` the last before it. */
  readonly to: number;
  /** The chain hash of `to`. */
  readonly hash: string;
  readonly body: Uint8Array;
  /** Counted from 1; absent when the body is whole. */
  readonly part?: { readonly number: number; readonly of: number } | undefined;
}

/** Says that a singleton went to another host: what stands behind it is no longer done in its name. */
export interface Fence {
  readonly singleton: string;
  readonly token: string;
  /** The host that took it over. */
  readonly by: string;
}

/** A message of a stream, as far as it is needed here. */
export interface StreamedMessage {
  /** In the stream. */
  readonly seq: number;
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  /** When the server took it, epoch milliseconds. */
  readonly at: number;
}

interface Stored {
  /** Of the message that completes it. */
  readonly streamSeq: number;
  /** When the server took it, epoch milliseconds. */
  readonly at: number;
}

/** Lines of a host's stream: a message, or several that are parts of one body. */
export interface MirrorBody extends Stored, Omit<MirrorMessage, 'part'> {}

/** What a message of a host's stream is. `left`: its host goes on in the next incarnation. */
export type MirrorEntry =
  | MirrorBody
  | (Stored & { readonly kind: 'fence'; readonly fence: Fence })
  | (Stored & { readonly kind: 'left' });

/** The headers of a message, without its id. */
export function headersOf({ kind, from, to, hash, part }: MirrorMessage): Record<string, string> {
  return {
    [KIND]: kind,
    [FROM]: String(from),
    [TO]: String(to),
    [HASH]: hash,
    ...(part && { [PART]: `${part.number}/${part.of}` }),
  };
}

/** @returns whether a message with these headers is a part of its host's log, unlike what others put there */
export function isOfHost(headers: Readonly<Record<string, string>>): boolean {
  return isKind(headers[KIND]);
}

export function fenceHeaders(fence: Fence): Record<string, string> {
  return { [FENCE]: JSON.stringify([fence.singleton, fence.token, fence.by]) };
}

/** @param next number of the incarnation that its host goes on in */
export function leftHeaders(next: number): Record<string, string> {
  return { [LEFT]: String(next) };
}

/** Puts messages together that are parts of one body. Feed it the messages of one stream in order. */
export class Assembler {
  #parts: Uint8Array[] = [];
  #of = '';

  /** @returns undefined while parts are missing, and for a message that is none of ours */
  add({ seq: streamSeq, body, headers, at }: StreamedMessage): MirrorEntry | undefined {
    const fence = fenceOf(headers[FENCE]);
    if (fence) return { kind: 'fence', fence, streamSeq, at };
    if (headers[LEFT] !== undefined) return { kind: 'left', streamSeq, at };
    const kind = headers[KIND];
    const [from, to, hash] = [Number(headers[FROM]), Number(headers[TO]), headers[HASH] ?? ''];
    if (!isKind(kind) || !Number.isSafeInteger(from) || !Number.isSafeInteger(to)) return undefined;
    const entry = { kind, from, to, hash, streamSeq, at };
    const [number, of] = (headers[PART] ?? '1/1').split('/').map(Number);
    const whole = `${kind} ${from} ${to} ${of}`;
    // A writer that was interrupted begins with the first part again.
    if (number === 1) this.#parts = [];
    else if (this.#of !== whole || this.#parts.length + 1 !== number) return undefined;
    this.#of = whole;
    this.#parts.push(body);
    if (number !== of) return undefined;
    const parts = this.#parts;
    this.#parts = [];
    return { ...entry, body: parts.length === 1 ? body : Buffer.concat(parts) };
  }
}

/**
 * Which messages of a stream count: the first `begin`, and records that go on where the last counted ones ended. Others are
 * void: copies, and what was under way behind a message whose place another host's took.
 */
export class Counting {
  #newest: number | undefined;

  /** @param newest the last record that counts already */
  constructor(newest?: number) {
    this.#newest = newest;
  }

  /** The last record that counts; undefined before the first. */
  get newest(): number | undefined {
    return this.#newest;
  }

  counts(entry: MirrorEntry): boolean {
    const isNext =
      this.#newest === undefined
        ? entry.kind === 'begin'
        : entry.kind === 'records' && entry.from === this.#newest + 1;
    if (!isNext || !('to' in entry)) return false;
    this.#newest = entry.to;
    return true;
  }
}

/** The lines of a body, without their ends. */
export function textsOf(body: Uint8Array): string[] {
  const texts = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString().split('\n');
  if (texts.at(-1) === '') texts.pop();
  return texts;
}

function isKind(kind: string | undefined): kind is MirrorKind {
  return kind === 'begin' || kind === 'records' || kind === 'states';
}

function fenceOf(text: string | undefined): Fence | undefined {
  if (text === undefined) return undefined;
  const parts = parsed(text);
  if (!Array.isArray(parts)) return undefined;
  const [singleton, token, by] = parts;
  if (typeof singleton !== 'string' || typeof token !== 'string' || typeof by !== 'string') return undefined;
  return { singleton, token, by };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
