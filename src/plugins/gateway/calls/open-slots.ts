import { slotOf } from '../../../machines/gateway/key-verdict.ts';
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
