import { CERTAIN_MS } from '../durations.ts';
import { ClusterError } from '../errors.ts';

/** Somebody else has appended: read on and decide again. Nothing was stored. */
export class StreamConflict extends ClusterError {
  /** Where the stream ends, as the server says. 0 also when it was emptied, or when a server that is cut off from the others says so. */
  readonly lastSeq: number;

  constructor(stream: string, expected: number, lastSeq: number) {
    super('HF_CLUSTER_STREAM_CONFLICT', { stream, expected, last: lastSeq });
    this.lastSeq = lastSeq;
  }
}

/** It may be stored, now or later. Only the stream itself can tell. */
export class StreamUnknown extends ClusterError {
  constructor(stream: string, reason: string) {
    super('HF_CLUSTER_STREAM_UNKNOWN', { stream, reason });
  }
}

/** Nothing was stored and nothing could be read now. */
export class StreamUnavailable extends ClusterError {
  constructor(stream: string, reason: string) {
    super('HF_CLUSTER_STREAM_UNAVAILABLE', { stream, reason });
  }
}

/** It takes no more, by its own limit or for lack of disk. Nothing was stored. */
export class StreamFull extends ClusterError {
  constructor(stream: string, reason: string) {
    super('HF_CLUSTER_STREAM_FULL', { stream, reason });
  }
}

/** It was deleted, or deleted and made anew. */
export class StreamGone extends ClusterError {
  constructor(stream: string, reason: string) {
    super('HF_CLUSTER_STREAM_GONE', { stream, reason });
  }
}

/** It ends before a message that has stood on it. */
export class StreamRewound extends ClusterError {
  readonly lastSeq: number;
  readonly seenSeq: number;
  /** Whether it has been so for longer than a server that is cut off answers: acknowledged messages are lost. */
  readonly isCertain: boolean;

  constructor(stream: string, lastSeq: number, seenSeq: number, forMs: number) {
    super('HF_CLUSTER_STREAM_REWOUND', { stream, last: lastSeq, seen: seenSeq });
    this.lastSeq = lastSeq;
    this.seenSeq = seenSeq;
    this.isCertain = forMs >= CERTAIN_MS;
  }
}

/** A message is missing. */
export class StreamGap extends ClusterError {
  /** The missing one. */
  readonly seq: number;
  /** The oldest message of the stream: those before it were removed to make room, when `seq` is less. */
  readonly firstSeq: number;

  constructor(stream: string, seq: number, firstSeq: number, lastSeq: number) {
    super('HF_CLUSTER_STREAM_GAP', { stream, seq, first: firstSeq, last: lastSeq });
    this.seq = seq;
    this.firstSeq = firstSeq;
  }
}

/** Codes of JetStream (`errors.json` of nats-server). */
const WRONG_LAST = 10071;
const WRONG_STREAM = 10060;
const STREAM_NOT_FOUND = 10059;
const NO_MESSAGE = 10037;
const STREAM_OFFLINE = 10118;
const SUBJECTS_OVERLAP = 10065;
/** Limits of the stream, of the account, of the server's disk and memory. */
const FULL = new Set([10077, 10047, 10028, 10023, 10002]);
/** Leaders are missing or changing. */
const NO_LEADER = new Set([10008, 10009, 10063, STREAM_OFFLINE]);

/** The user of NATS may not write to the subject: the server has dropped it. */
const NOT_PERMITTED = 'PermissionViolationError';

/** @returns the code that JetStream gave, when it answered at all */
function apiCode(error: unknown): number | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' ? error.code : undefined;
}

export function isMissingStream(error: unknown): boolean {
  return apiCode(error) === STREAM_NOT_FOUND;
}

export function isMissingMessage(error: unknown): boolean {
  return apiCode(error) === NO_MESSAGE;
}

/**
 * @param expected where the writer thought that the stream ends
 * @returns what a failed append means
 */
export function appendError(error: unknown, stream: string, expected: number | undefined): Error {
  const code = apiCode(error);
  const text = textOf(error);
  if (code === WRONG_LAST)
    return new StreamConflict(stream, expected ?? 0, Number(/(\d+)\s*$/.exec(text)?.[1] ?? 0));
  if (code === WRONG_STREAM) return new StreamGone(stream, 'its subjects belong to another stream');
  if (code !== undefined && FULL.has(code)) return new StreamFull(stream, text);
  if (code !== undefined && NO_LEADER.has(code)) return new StreamUnavailable(stream, text);
  // Nobody heard it, so nobody stores it later.
  if (nameOf(error) === 'JetStreamNotEnabled')
    return new StreamUnavailable(stream, 'no server answers for it');
  if (code !== undefined) return refused(stream, text, code);
  if (error instanceof ClusterError) return error;
  if (isForbidden(error)) return refused(stream, text, NOT_PERMITTED);
  return new StreamUnknown(stream, nameOf(error) === 'TimeoutError' ? 'no answer in time' : text);
}

/** @returns what it means that a stream could not be made */
export function makeError(error: unknown, stream: string): Error {
  if (apiCode(error) !== SUBJECTS_OVERLAP) return appendError(error, stream, undefined);
  const differences = 'some of its subjects belong to a stream of another name';
  return new ClusterError('HF_CLUSTER_STREAM_DIFFERS', { stream, differences });
}

/** @returns what a failed reading means */
export function readError(error: unknown, stream: string): Error {
  const code = apiCode(error);
  if (error instanceof ClusterError) return error;
  if (isMissingStream(error)) return new StreamGone(stream, 'there is none of this name');
  if (isForbidden(error)) return refused(stream, textOf(error), NOT_PERMITTED);
  if (code === undefined || NO_LEADER.has(code))
    return new StreamUnavailable(
      stream,
      nameOf(error) === 'TimeoutError' ? 'no answer in time' : textOf(error),
    );
  return refused(stream, textOf(error), code);
}

function refused(stream: string, reason: string, code: number | string): Error {
  return new ClusterError('HF_CLUSTER_STREAM_REFUSED', { stream, reason, code });
}

/** @returns whether the server dropped the request for lack of a permission: a request says so as the cause of its error */
function isForbidden(error: unknown): boolean {
  return nameOf(error) === NOT_PERMITTED || (error instanceof Error && nameOf(error.cause) === NOT_PERMITTED);
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

function textOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : 'no reason was given';
}
