import type { EventEmitter } from 'node:events';
import { slotOf } from '../../../machines/gateway/key-rules.ts';
import type { Exchange } from '../exchange.ts';

/** As much any key may have open, unless its own terms say otherwise. */
export interface OpenLimits {
  readonly call: number;
  readonly stream: number;
}

/** What the key's machine is told of it. */
export interface OpenFacts {
  readonly open?: number;
  readonly most?: number;
}

/**
 * How many calls and streams each key has open in this process. A count of what is there, not of what was decided: it
 * needs no fixing after a crash, which ends them all.
 */
export class OpenSlots {
  readonly #limits: OpenLimits;
  /** By key. */
  readonly #open = { call: new Map<string, number>(), stream: new Map<string, number>() };

  constructor(limits: OpenLimits) {
    this.#limits = limits;
  }

  /** Counts a call for as long as its exchange is open. @returns what was open before it */
  enter(key: string, method: string, exchange: Pick<Exchange, 'onClose'>): OpenFacts {
    const slot = slotOf(method);
    if (slot === undefined) return {};
    const all = this.#open[slot];
    const open = all.get(key) ?? 0;
    all.set(key, open + 1);
    exchange.onClose(() => {
      const left = (all.get(key) ?? 1) - 1;
      if (left > 0) all.set(key, left);
      else all.delete(key);
    });
    const most = this.#limits[slot];
    return open > 0 ? { open, most } : { most };
  }
}

/** A body up to here weighs no more than the connection it comes on. */
const SMALL = 16 * 1024;

interface Holding {
  readonly key: string;
  bytes: number;
  /** How many need it: its response, and what answers it elsewhere. */
  users: number;
}

/**
 * How much of requests each key has this process hold: from before a body is read until its answer is out. The limit of
 * open calls is judged by what a body says, so something must hold before that.
 */
export class HeldBodies {
  readonly #most: number;
  readonly #longest: number;
  readonly #byKey = new Map<string, number>();
  readonly #byRequest = new Map<string, Holding>();

  /**
   * @param most bytes a key; one request of whatever size is always taken
   * @param longest that any body may be, bytes
   */
  constructor(most: number, longest: number) {
    this.#most = most;
    this.#longest = longest;
  }

  /**
   * Counts a body for as long as its response is open.
   *
   * @param bytes undefined when they are not told
   * @returns false, and nothing is counted, when it would be too much
   */
  hold(id: string, key: string, bytes = this.#longest, response: Pick<EventEmitter, 'once'>): boolean {
    if (bytes <= SMALL) return true;
    const held = this.#byKey.get(key) ?? 0;
    if (held > 0 && held + bytes > this.#most) return false;
    this.#byRequest.set(id, { key, bytes, users: 1 });
    this.#add(key, bytes);
    response.once('close', () => this.#release(id));
    return true;
  }

  /** Its length is known now. */
  settle(id: string, bytes: number): void {
    const holding = this.#byRequest.get(id);
    if (!holding) return;
    this.#add(holding.key, bytes - holding.bytes);
    holding.bytes = bytes;
  }

  /** Its answer comes elsewhere, and may come later. */
  keep(id: string, answering: Pick<Exchange, 'onClose'>): void {
    const holding = this.#byRequest.get(id);
    if (!holding) return;
    holding.users += 1;
    answering.onClose(() => this.#release(id));
  }

  /** What the machine of a key is told of a body that was not read. @param bytes of it; undefined when not told */
  facts(key: string, bytes = this.#longest): OpenFacts & { readonly bytes: number } {
    return { bytes, open: this.#byKey.get(key) ?? 0, most: this.#most };
  }

  #release(id: string): void {
    const holding = this.#byRequest.get(id);
    if (!holding) return;
    holding.users -= 1;
    if (holding.users > 0) return;
    this.#byRequest.delete(id);
    this.#add(holding.key, -holding.bytes);
  }

  #add(key: string, bytes: number): void {
    const held = (this.#byKey.get(key) ?? 0) + bytes;
    if (held > 0) this.#byKey.set(key, held);
    else this.#byKey.delete(key);
  }
}
