import type { Signature } from './signing.ts';

/** A record's number and hash that were noted elsewhere. */
export interface Anchor {
  readonly seq: number;
  readonly hash: string;
}

/** What a log is held against, beside itself. */
export interface Trust {
  readonly anchor?: Anchor | undefined;
  /** The public key of the data folder, or the one that somebody expects. */
  readonly key?: string | undefined;
  /** The newest signature, as it was noted beside the key. */
  readonly head?: Signature | undefined;
  /** The newest record that was acknowledged, as it was noted there. */
  readonly mark?: Anchor | undefined;
  /** Whether nothing may stand behind the last signature of that key. */
  readonly whole?: boolean | undefined;
}
