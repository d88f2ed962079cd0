import type { MsgHdrs } from '@nats-io/transport-node';
import type { ClusterKey } from '../keys.ts';

/** Headers of our own begin with it; they count for the code. */
const OWN = 'Hf-';
const CODE = 'Hf-Mac';
export const MESSAGE_ID = 'Nats-Msg-Id';
/** Where the answers to a question go: only there, whoever sends it again. */
export const REPLY_TO = 'Hf-Reply-To';
export const EXPECTED_LAST = 'Nats-Expected-Last-Sequence';

export type Headers = Readonly<Record<string, string>>;

/** A message as it is sent and as it arrives. */
export interface Envelope {
  readonly subject: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/**
 * Puts a code by the key of the cluster on messages and checks it (docs/cluster.md, "Concepts"). A stream's messages carry the code of
 * that very stream and of their place in it, so that none can be stored a second time by somebody who has read it.
 *
 * @param place of the messages: the stream, or nothing for those that no stream keeps
 */
export class Seal {
  readonly #key: ClusterKey;
  readonly #place: string;

  constructor(key: ClusterKey, place = '') {
    this.#key = key;
    this.#place = place;
  }

  /** @returns the headers with the code */
  add({ subject, headers, body }: Envelope): Headers {
    return {
      ...headers,
      [CODE]: this.#key.mac({ subject, headers: counting(headers), body, place: this.#place }),
    };
  }

  /** @returns whether the message comes from somebody who has the key, and was meant for this place */
  isGenuine({ subject, headers, body }: Envelope): boolean {
    const code = headers[CODE];
    if (code === undefined) return false;
    return this.#key.vouches({ subject, headers: counting(headers), body, place: this.#place }, code);
  }
}

/** Messages of the cluster have a few short headers. Decoding as many as fit takes some 3 ms, and those of 16 KiB would take 200. */
export const MOST_HEADER_BYTES = 2 * 1024;

/**
 * @param decode reads the headers; throws at some that anybody in the account may have written
 * @param bytes of the headers before they are decoded
 * @returns the headers of a message as plain data, of several values of one name the first; undefined when they are too large or malformed
 */
export function plainHeaders(decode: () => MsgHdrs | undefined, bytes: number): Headers | undefined {
  if (bytes > MOST_HEADER_BYTES) return undefined;
  try {
    return Object.fromEntries(Array.from(decode() ?? [], ([name, [value = '']]) => [name, value]));
  } catch {
    return undefined;
  }
}

function counting(headers: Headers): Headers {
  return Object.fromEntries(
    Object.entries(headers).filter(
      ([name]) => (name.startsWith(OWN) && name !== CODE) || name === MESSAGE_ID || name === EXPECTED_LAST,
    ),
  );
}
