import type { EventEmitter } from 'node:events';
import { slotOf } from '../../../machines/gateway/key-limits.ts';
import type { Exchange } from '../exchange.ts';

/** Bodies up to this size are not counted, bytes: their connection takes more memory. */
const SMALL = 16 * 1024;

/** What any key may have open and have the gateway hold, unless its own terms say otherwise. */
export interface KeyUsageLimits {
  readonly calls: number;
  readonly streams: number;
  /** Bytes of request bodies; one request of whatever size is always taken. */
  readonly heldBytes: number;
  /** Longest body, bytes. */
  readonly longestBody: number;
}

/** The use of a key by which its machine decides, named as in `CallRequest`. */
export interface KeyUsageFacts {
  readonly openCount?: number;
  readonly defaultLimit?: number;
}

interface HeldBody {
  readonly key: string;
  bytes: number;
  /** How many need it: its response, and the exchange that answers it elsewhere. */
  users: number;
}

/**
 * What each key uses of this process: calls and streams that are open, and bytes of bodies that are held, from before a
 * body is read until its answer is out. It counts what is there and not what was decided, so that a crash, which ends
 * all of it, leaves nothing to correct.
 */
export class KeyUsage {
  readonly #limits: KeyUsageLimits;
  readonly #calls = new Map<string, number>();
  readonly #streams = new Map<string, number>();
  readonly #heldBytes = new Map<string, number>();
  readonly #bodies = new Map<string, HeldBody>();

  constructor(limits: KeyUsageLimits) {
    this.#limits = limits;
  }

  /** Counts a call for as long as its exchange is open. @returns what was open before it */
  enter(key: string, method: string, exchange: Pick<Exchange, 'onClose'>): KeyUsageFacts {
    const slot = slotOf(method);
    if (slot === undefined) return {};
    const [counts, defaultLimit] =
      slot === 'call' ? [this.#calls, this.#limits.calls] : [this.#streams, this.#limits.streams];
    const openCount = counts.get(key) ?? 0;
    add(counts, key, 1);
    exchange.onClose(() => add(counts, key, -1));
    return openCount > 0 ? { openCount, defaultLimit } : { defaultLimit };
  }

  /** What is open: calls and streams of each key. */
  openByKey(): [key: string, open: readonly [calls: number, streams: number]][] {
    const keys = new Set([...this.#calls.keys(), ...this.#streams.keys()]);
    return [...keys].map((key) => [key, [this.#calls.get(key) ?? 0, this.#streams.get(key) ?? 0]]);
  }

  /**
   * Counts a body for as long as its response is open.
   *
   * @param bytes undefined when its length is not known
   * @returns false, and nothing is counted, when it would be too much
   */
  hold(
    id: string,
    key: string,
    bytes = this.#limits.longestBody,
    response: Pick<EventEmitter, 'once'>,
  ): boolean {
    if (bytes <= SMALL) return true;
    const held = this.#heldBytes.get(key) ?? 0;
    if (held > 0 && held + bytes > this.#limits.heldBytes) return false;
    this.#bodies.set(id, { key, bytes, users: 1 });
    add(this.#heldBytes, key, bytes);
    response.once('close', () => this.#release(id));
    return true;
  }

  /** Corrects the count of a body whose length is known now. */
  settle(id: string, bytes: number): void {
    const body = this.#bodies.get(id);
    if (!body) return;
    add(this.#heldBytes, body.key, bytes - body.bytes);
    body.bytes = bytes;
  }

  /** Holds a body until another exchange, which answers it later, is closed. */
  keep(id: string, answering: Pick<Exchange, 'onClose'>): void {
    const body = this.#bodies.get(id);
    if (!body) return;
    body.users += 1;
    answering.onClose(() => this.#release(id));
  }

  /** The facts of a body that was not read. @param bytes its length; undefined when not known */
  heldFacts(key: string, bytes = this.#limits.longestBody): KeyUsageFacts & { readonly unreadBytes: number } {
    return {
      unreadBytes: bytes,
      openCount: this.#heldBytes.get(key) ?? 0,
      defaultLimit: this.#limits.heldBytes,
    };
  }

  #release(id: string): void {
    const body = this.#bodies.get(id);
    if (!body) return;
    body.users -= 1;
    if (body.users > 0) return;
    this.#bodies.delete(id);
    add(this.#heldBytes, body.key, -body.bytes);
  }
}

function add(counts: Map<string, number>, key: string, change: number): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
