import { createHash } from 'node:crypto';
import { z } from 'zod';

/** The meaning of the messages of the ledger. Hosts of another one claim nothing while a host of this one holds something. */
export const LEDGER_PROTOCOL = 1;

/** At most so many messages of strangers may stand between a message and the entry that its sender had read last. */
export const MOST_BETWEEN = 256;

const name = z.string().min(1).max(255);
const count = z.int().nonnegative();

/** How far the log of a host stands on its own stream, and the message with which the newest states of actors end there. */
const position = z.object({ incarnation: name, seq: count, states: count.optional() });
export type MirrorPosition = z.infer<typeof position>;

/** Who held a singleton, and how far its log was mirrored when it last said so. */
const tenure = z.object({ host: name, run: name, number: count, mirror: position.optional() });
/** With those before it, newest first: the last one may have lost it before its work began. */
const lastHolder = tenure.extend({ before: z.array(tenure).optional() });
export type LastHolder = z.infer<typeof lastHolder>;

const message = z.looseObject({
  protocol: z.int(),
  host: name,
  /** The process: random, new at each start. With `beat` it names this message. */
  run: name,
  beat: count,
  /** Two runs with the same host and folder cannot live at the same time (`folder.ts`). */
  folder: name,
  /** Of Holdfast. */
  version: name,
  ttlMs: z.int().positive(),
  drained: z.boolean(),
  /** The chain of all messages up to `read`. */
  prev: z.string(),
  /**
   * The newest entry that the sender had read. What may stand between it and this message is none of this cluster's: else
   * this message says nothing. Absent: it stands right behind that entry.
   */
  read: count.optional(),
  /** The highest number of a token that the sender has seen. */
  above: count,
  /** With the number of the token that is kept, or without for a claim that begins here. */
  claims: z.array(z.object({ singleton: name, number: count.optional() })),
  /** `to` names the host that may claim it before others. */
  releases: z.array(z.object({ singleton: name, number: count, to: name.optional() })),
  mirror: position.optional(),
  /** What a reader of the newest messages alone could not know. */
  earlier: z.array(lastHolder.extend({ singleton: name })).optional(),
});
export type LedgerMessage = z.infer<typeof message>;

export function encodeMessage(body: LedgerMessage): Buffer {
  return Buffer.from(JSON.stringify(body));
}

/** @returns undefined for what no host of this protocol can have written */
export function parseMessage(body: Uint8Array): LedgerMessage | undefined {
  try {
    return message.safeParse(JSON.parse(Buffer.from(body).toString('utf8'))).data;
  } catch {
    return undefined; // not JSON
  }
}

/** The chain with one more message: two hosts that have the same one have read the same messages. */
export function chainOf(before: string, body: Uint8Array): string {
  return createHash('sha256').update(before).update('\n').update(body).digest('hex').slice(0, 32);
}
