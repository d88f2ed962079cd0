import type { NatsConnection } from '@nats-io/transport-node';
import type { Clock } from '../../../core/kernel/clock.ts';
import { inTime } from './in-time.ts';
import type { NatsLink } from './link.ts';
import type { LinearStream } from './stream.ts';
import { StreamUnknown } from './stream-errors.ts';

/** More than are on their way at once. */
const MOST_SENT = 16;

export interface QuorumProofOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly stream: LinearStream;
  /** Of the stream; this host alone writes there, and its newest message takes the place of the one before. */
  readonly subject: string;
  /** How long to wait for the acknowledgement, and then for the message, milliseconds each. */
  readonly withinMs: number;
  /** A quorum has a message that was sent then, by `Clock.monotonic`. */
  readonly onProven: (sentAt: number, body: Buffer) => void;
}

/**
 * Stores messages on a stream and reads them back, which proves that this host reaches a quorum of the servers: a leader shows nothing that a quorum has not taken. An
 * acknowledgement, or a refusal, proves nothing: whoever is in the account can give one in the server's place (docs/cluster.md, "Beats").
 */
export class QuorumProof {
  readonly #options: QuorumProofOptions;
  readonly #sent: { readonly body: Buffer; readonly at: number }[] = [];
  /** The connection over which the stream was seen to be the one that was opened. */
  #seenOver: NatsConnection | undefined;

  constructor(options: QuorumProofOptions) {
    this.#options = options;
  }

  /**
   * @param body differs from each one before
   * @throws why it is not proven that a quorum has it
   */
  async store(body: Buffer): Promise<void> {
    const { stream, subject, clock, withinMs } = this.#options;
    const sent = { body, at: clock.monotonic() };
    this.#sent.push(sent);
    if (this.#sent.length > MOST_SENT) this.#sent.shift();
    let refusal: unknown = new StreamUnknown(stream.name, 'another message stands in its place');
    try {
      await stream.append(body, { subject, timeoutMs: withinMs });
    } catch (error) {
      refusal = error;
    }
    const provenAt = await inTime(this.#newestThere(), stream.name, withinMs, clock);
    if (provenAt === undefined || provenAt < sent.at) throw refusal;
  }

  /** @returns when the message was sent that stands on the stream; undefined when none of the newest does */
  async #newestThere(): Promise<number | undefined> {
    const { link, stream, subject, onProven } = this.#options;
    const connection = link.connected();
    // Servers that were all started again have lost it, and somebody may have made another one, with fewer copies.
    if (this.#seenOver !== connection) await stream.last();
    this.#seenOver = connection;
    const there = (await stream.lastOf(subject))?.message;
    const sent = there && this.#sent.find(({ body }) => body.equals(there.body));
    if (sent) onProven(sent.at, sent.body);
    return sent?.at;
  }
}
