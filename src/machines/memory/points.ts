/** The order of points in memory stores, and one number for all of them. */

/** As the stores name points. */
type PointId = number | string;

/** @returns negative, 0 or positive; stores list numbers first, then UUIDs */
export function comparePointIds(a: PointId, b: PointId): number {
  if (typeof a !== typeof b) return typeof a === 'number' ? -1 : 1;
  return a === b ? 0 : a < b ? -1 : 1;
}

const BITS = 128;

/** The fingerprints of points added up: the same for the same points in any order, and another one for any others. */
export class DigestSum {
  #sum = 0n;

  /** @param fingerprint of the vault: `fp_` and 32 hexadecimal digits */
  add(fingerprint: string): void {
    this.#sum = BigInt.asUintN(BITS, this.#sum + BigInt(`0x${fingerprint.slice(3)}`));
  }

  /** 32 hexadecimal digits. */
  get text(): string {
    return this.#sum.toString(16).padStart(BITS / 4, '0');
  }
}
