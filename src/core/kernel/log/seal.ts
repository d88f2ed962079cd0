import { CoreError } from '../errors/core-error.ts';
import { isGenuine, type Signature } from './signing.ts';
import type { SqliteReader } from './sqlite-reader.ts';
import type { Trust } from './trust.ts';

/** The signatures of a log, passed one after another while its records are walked. */
export class Seal {
  readonly #reader: SqliteReader;
  readonly #trust: Trust;
  readonly #all: readonly Signature[];
  #next = 0;
  /** Whose signatures count: the expected key's, else that of the newest signature. */
  readonly key: string | undefined;
  /** The newest record that was signed, whether it is there or not. */
  readonly newest: number;
  /** Up to this record all is as that key signed it. */
  upTo = 0;
  signatures = 0;

  constructor(reader: SqliteReader, trust: Trust) {
    this.#reader = reader;
    this.#trust = trust;
    const there = reader.signatures();
    const { head } = trust;
    const isThere = there.some(
      ({ seq, hash, key }) => seq === head?.seq && hash === head.hash && key === head.key,
    );
    this.#all = [...there, ...(head && !isThere ? [head] : [])].toSorted((a, b) => a.seq - b.seq);
    const signed = this.#all.at(-1);
    this.key = trust.key !== undefined && (signed || trust.whole) ? trust.key : signed?.key;
    this.newest = signed?.seq ?? 0;
  }

  /** A log that does not begin at record 1 was pruned or imported: its own key says so, or somebody took records away. */
  checkBegin(first: number): void {
    if (first <= 1 || !this.#trust.head) return;
    const begin = this.#reader.begin();
    if (begin?.key === this.#trust.key && begin && isGenuine('begin', begin)) return;
    const reason = `it is missing, with all up to ${first - 1}, and no signature says that they were archived`;
    throw new CoreError('HF_LOG_CORRUPT', { seq: 1, reason });
  }

  /** @throws HF_LOG_CORRUPT what was signed at this record is another */
  pass(seq: number): void {
    for (let next = this.#all[this.#next]; next && next.seq <= seq; next = this.#all[this.#next]) {
      this.#next += 1;
      if (next.seq === seq) this.#check(next);
    }
  }

  /** @throws HF_LOG_UNSIGNED something stands behind the last signature, and nothing may */
  end(last: number): void {
    if (!this.#trust.whole || this.upTo >= last) return;
    throw new CoreError('HF_LOG_UNSIGNED', { from: this.upTo + 1, to: last, key: this.key ?? 'any key' });
  }

  #check(signature: Signature): void {
    const { seq, hash, key } = signature;
    if (!isGenuine('record', signature)) {
      throw new CoreError('HF_LOG_CORRUPT', {
        seq,
        reason: 'its signature is not one of the key it names',
      });
    }
    if (this.#reader.hashOf(seq) !== hash) {
      const span = this.upTo + 1 < seq ? `it or one of those up to ${seq}` : 'it';
      const reason = `${span} was written anew: record ${seq} is not the one that was signed`;
      throw new CoreError('HF_LOG_CORRUPT', {
        seq: Math.max(this.upTo + 1, this.#reader.firstSeq()),
        reason,
      });
    }
    if (key !== this.key) return;
    this.upTo = seq;
    this.signatures += 1;
  }
}
