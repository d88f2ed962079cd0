import { isObject } from '../json.ts';
import type { LogRecord } from '../log/record.ts';

/** The takeover by which a state came from another host: it says what it stands on, and whether all of it was recorded. */
export interface TakeoverMark {
  /** The host that left the state, and the incarnation of its stream. */
  readonly host: string;
  readonly incarnation: string;
  /** That host's last record that counts, and its hash. */
  readonly seq: number;
  readonly hash: string;
  /** By how much this host's clock was ahead of that host's, milliseconds. */
  readonly clockAheadMs: number;
  /** Which of the states that were taken over together this is, from 0, and how many they are: their records follow each other. */
  readonly part: number;
  readonly parts: number;
  /** The record here that took it over. */
  readonly record: number;
}

/** The takeover that a record with the event `adopt` is a part of. @returns undefined when the event is none */
export function takeoverMarkOf({ seq: record, event }: LogRecord): TakeoverMark | undefined {
  const { host, incarnation, seq, hash, clockAheadMs = 0, part, parts, state } = event;
  if (typeof host !== 'string' || typeof incarnation !== 'string' || typeof hash !== 'string')
    return undefined;
  if (!isNumber(seq) || !isNumber(clockAheadMs) || !isNumber(part) || !isNumber(parts)) return undefined;
  if (!isObject(state)) return undefined;
  return { host, incarnation, seq, hash, clockAheadMs, part, parts, record };
}

function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value);
}
