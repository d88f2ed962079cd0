import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { type Clock, passed } from '../../../core/kernel/clock.ts';
import { inTime } from './in-time.ts';
import type { NatsLink } from './link.ts';
import type { LinearStream } from './stream.ts';
import { StreamUnknown } from './stream-errors.ts';
import type { StreamSettings } from './stream-settings.ts';

/** Minutes of the messages of many hosts; who wants one to be gone before it is read back has to store as much meanwhile. */
const MAX_BYTES = 1024 * 1024;
/** So a stranger needs a thousand messages for that, at least. */
const LARGEST_MESSAGE = 1024;
/** What is not there yet is looked for again after these, milliseconds: somebody else may have acknowledged it early. */
const AGAIN_MS = [5, 20, 100, 400];

/** How a stream of proofs is to be. @param name of the cluster */
export function proofStream(name: string, number: number, replicas: number | undefined): StreamSettings {
  return {
    ...{ name: `HF_${name}_QUORUM_${number}`, subjects: [`${subjectOf(name, number)}.*`], storage: 'memory' },
    ...{ maxBytes: MAX_BYTES, largestMessage: LARGEST_MESSAGE, discard: 'old', replicas, needsCopies: true },
  };
}

function subjectOf(name: string, number: number): string {
  return `hf.${name}.quorum.${number}`;
}

export interface QuorumProofOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  /** As `proofStream` has it. */
  readonly stream: LinearStream;
  /** Of the cluster. */
  readonly name: string;
  readonly number: number;
  /** How long to wait for the acknowledgement, and then for the message, milliseconds each. */
  readonly withinMs: number;
}

/**
 * Stores messages on a stream and reads them back, which proves that this host reaches a quorum of the servers: a leader shows nothing that a quorum has not taken. An
 * acknowledgement, or a refusal, proves nothing: whoever is in the account can give one in the server's place (docs/cluster.md, "Beats").
 *
 * Each message has a subject that nobody can know before it is sent, and it is the first one there: what others send to it stands behind it.
 */
export class QuorumProof {
  readonly #options: QuorumProofOptions;
  /** The connection over which the stream was seen to be the one that was opened. */
  #seenOver: NatsConnection | undefined;

  constructor(options: QuorumProofOptions) {
    this.#options = options;
  }

  /**
   * @returns when the message was sent that a quorum has, by `Clock.monotonic`
   * @throws why it is not proven
   */
  async store(): Promise<number> {
    const { stream, name, number, clock, withinMs } = this.#options;
    const subject = `${subjectOf(name, number)}.${randomUUID()}`;
    const sentAt = clock.monotonic();
    let refusal: unknown = new StreamUnknown(stream.name, 'it was acknowledged and is not there');
    try {
      await stream.append('', { subject, timeoutMs: withinMs });
    } catch (error) {
      refusal = error;
    }
    if (!(await inTime(this.#isThere(subject), stream.name, withinMs, clock))) throw refusal;
    return sentAt;
  }

  async #isThere(subject: string): Promise<boolean> {
    const { link, stream, clock } = this.#options;
    const connection = link.connected();
    // Servers that were all started again have lost it, and somebody may have made another one, with fewer copies.
    if (this.#seenOver !== connection) await stream.last();
    this.#seenOver = connection;
    for (const ms of [0, ...AGAIN_MS]) {
      if (ms > 0) await passed(clock, ms);
      if (await stream.firstOf(subject)) return true;
    }
    return false;
  }
}
