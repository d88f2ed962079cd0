import type { StoredMsg } from '@nats-io/jetstream';
import { storedHeaderBytes } from './header-bytes.ts';
import { EXPECTED_LAST, type Headers, plainHeaders, type Seal } from './seal.ts';

/** A message that stands on a stream, written by somebody who has the key of the cluster. */
export interface StreamMessage {
  readonly seq: number;
  readonly subject: string;
  readonly body: Buffer;
  readonly headers: Headers;
  /** When the leader stored it, by its clock, epoch milliseconds: for people, not for decisions. */
  readonly at: number;
}

/** What stands at a place of a stream. */
export interface Looked {
  /** Undefined when nobody with the key of the cluster can have written it there. */
  readonly message: StreamMessage | undefined;
  /** Of its body. */
  readonly bytes: number;
}

/** Where a stream begins and ends. */
export interface StreamEnds {
  /** The newest message, 0 when there never was one. */
  readonly seq: number;
  /** The oldest message that is left; `seq` + 1 when there is none. */
  readonly firstSeq: number;
  /** Bytes that it holds. */
  readonly bytes: number;
  /** The most that it may hold; not above 0 when there is no limit. */
  readonly maxBytes: number;
}

/**
 * Checks a stored message (docs/cluster.md, "Concepts"). Its code covers the expectation that it was appended with, so one that somebody
 * stored again does not stand where its code says.
 *
 * The client of NATS decodes the body whenever it is asked for it, so this is done here and nowhere else.
 */
export function openStored(stored: StoredMsg, seal: Seal): Looked {
  const { seq, subject, data, time } = stored;
  const bytes = data.length;
  const headers = plainHeaders(() => stored.header, storedHeaderBytes(stored));
  if (!headers) return { message: undefined, bytes };
  const expected = headers[EXPECTED_LAST];
  const isInPlace = expected === undefined || Number(expected) === seq - 1;
  if (!isInPlace || !seal.isGenuine({ subject, headers, body: data })) return { message: undefined, bytes };
  const body = Buffer.from(data.buffer, data.byteOffset, data.length);
  return { message: { seq, subject, body, headers, at: time.getTime() }, bytes };
}
