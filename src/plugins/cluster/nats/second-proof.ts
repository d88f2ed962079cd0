import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { NatsLink } from './link.ts';
import { proofStream, QuorumProof } from './quorum-proof.ts';
import { isAway, type Replication } from './replicas.ts';
import { LinearStream } from './stream.ts';
import { StreamGone } from './stream-errors.ts';

/** Where leaders are changes when a server is lost, and when it is back. */
const LOOK_MS = 10_000;
/** While a leader is not known: it is being elected. */
const LOOK_AGAIN_MS = 1_000;
/** Each new stream has a leader by chance: that so many share a server is all but impossible. The first is that of the beats. */
const NUMBERS = [2, 3, 4, 5, 6, 7];

export interface SecondProofOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of the cluster. */
  readonly name: string;
  readonly replicas?: number | undefined;
  /** The stream whose leader the others are to be apart from. */
  readonly first: string;
  /** A message whose acknowledgement takes longer proves nothing, milliseconds. */
  readonly withinMs: number;
  /** A quorum has a message that was sent then, by `Clock.monotonic`. */
  readonly onProven: (sentAt: number) => void;
}

/**
 * Proves that this host reaches a quorum of three servers while the stream of the beats has no leader (docs/cluster.md, "Beats"). A host may not
 * move a leader, so it makes small streams in memory until one of them is led by another server than the first.
 */
export class SecondProof {
  readonly #options: SecondProofOptions;
  readonly #proofs = new Map<string, QuorumProof>();
  readonly #asked = new Set<string>();
  #isLooking = false;
  #cancel: () => void = () => {};
  #endListening: () => void = () => {};
  #isStopped = false;

  constructor(options: SecondProofOptions) {
    this.#options = options;
  }

  /** Begins to look for leaders; does not wait for NATS. */
  start(): void {
    this.#endListening = this.#options.link.onChange((isUp) => isUp && void this.#look());
    void this.#look();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    this.#endListening();
  }

  /** Sends a message to each of the streams that has taken the one before, or refused it. */
  ask(): void {
    for (const [name, proof] of this.#proofs) if (!this.#asked.has(name)) void this.#ask(name, proof);
  }

  /** Never rejects. */
  async #ask(name: string, proof: QuorumProof): Promise<void> {
    this.#asked.add(name);
    try {
      this.#options.onProven(await proof.store());
    } catch (error) {
      this.#options.logger.debug({ err: error, stream: name }, 'cluster.proof.unacknowledged');
      // Made anew it is opened at the next look, if it is as it has to be.
      if (error instanceof StreamGone) this.#proofs.delete(name);
    } finally {
      this.#asked.delete(name);
    }
  }

  /** Opens or makes streams until one has a leader of its own. Never rejects. */
  async #look(): Promise<void> {
    if (this.#isLooking || this.#isStopped) return;
    this.#isLooking = true;
    this.#cancel();
    let isFound = false;
    try {
      isFound = await this.#isApart();
    } catch (error) {
      this.#options.logger.debug({ err: error }, 'cluster.proof.streams');
    }
    this.#isLooking = false;
    if (this.#isStopped) return;
    this.#cancel = this.#options.clock.after(isFound ? LOOK_MS : LOOK_AGAIN_MS, () => void this.#look());
  }

  /** @returns false to look again soon */
  async #isApart(): Promise<boolean> {
    const { link, clock, logger, first, name, replicas, withinMs } = this.#options;
    // One server, or one copy: no other stream proves more than the first.
    if (!link.isUp || !link.isClustered) return true;
    const standing = await this.#standingOf(first);
    const leader = standing?.leader;
    if (leader === undefined) return false;
    // Of two that are left neither may be lost: there is nothing to prove until the third is back.
    if (standing?.replicas?.some(isAway) === true) return true;
    for (const number of NUMBERS) {
      const settings = proofStream(name, number, replicas);
      const stream = await LinearStream.open(link, settings, { clock, logger });
      if (stream.replicas === 1) return true;
      const proof = new QuorumProof({ link, clock, stream, name, number, withinMs });
      this.#proofs.set(stream.name, proof);
      const its = (await this.#standingOf(stream.name))?.leader;
      if (its !== leader) return its !== undefined;
    }
    return true;
  }

  async #standingOf(stream: string): Promise<Replication> {
    return (await (await this.#options.link.manager()).streams.info(stream)).cluster;
  }
}
