import type { Json } from '../../../core/kernel/json.ts';

/** What an exported page says of itself: the last line of what it holds, as JSON, behind the lines of the export. */
export interface PageFacts {
  /** Release that made it. */
  readonly version: string;
  /** Epoch milliseconds. */
  readonly madeAt: number;
  readonly records: number;
  readonly range: { readonly from: number; readonly to: number };
  /** Epoch milliseconds of the first and the last record. */
  readonly time: { readonly from: number; readonly to: number };
  /** The first and the last record of the log that it was made from. */
  readonly of: { readonly first: number; readonly last: number };
  /** The last record with its hash: what `holdfast log verify` prints as the head. */
  readonly head: string;
  /** What the page leaves out: in a word or two, and what that means. */
  readonly without: readonly { readonly what: string; readonly which: string }[];
  /** Records in which a text was redacted: their hashes are those of the texts as they were. */
  readonly redacted: readonly number[];
  /** Types of actors whose machines are not those of this page. */
  readonly foreign: readonly string[];
  /** What actors start from, by address, where their machine is given something. */
  readonly inputs: Readonly<Record<string, Json>>;
  /** The drawings of machines, by type of actor. */
  readonly drawings: Readonly<Record<string, unknown>>;
}

/** The element that holds a page's lines: gzip as base64. */
export const DATA_ELEMENT = 'log';
