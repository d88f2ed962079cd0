import { randomUUID } from 'node:crypto';
import type { ClusterStanding } from '../../../core/contracts/cluster.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Json } from '../../../core/kernel/json.ts';
import { ClusterError } from '../errors.ts';
import { Drops, LARGEST_MESSAGE } from '../nats/body.ts';
import type { NatsLink } from '../nats/link.ts';
import { proofStream, QuorumProof } from '../nats/quorum-proof.ts';
import { SecondProof } from '../nats/second-proof.ts';
import { LinearStream } from '../nats/stream.ts';
import { Trouble } from '../nats/trouble.ts';
import type { Beat, BeatReport, HeardHost, Stamp } from './beat.ts';
import { Hearing, type NameTaker } from './hearing.ts';
import { NameClaim } from './name-claim.ts';
import { Presence } from './presence.ts';

const BEAT_MS = 500;
/** Its number among the streams of proofs. */
const FIRST = 1;
/** Nothing was proven since the beat before: another stream is asked. */
const UNACKNOWLEDGED_MS = 1.5 * BEAT_MS;
/** How long to wait for the acknowledgement of a proof, and then to read it back. */
const ACKNOWLEDGED_WITHIN_MS = 1_500;
const MOST_UNDER_WAY = 8;
/** A message may be so much older than its sender's clock says by its beats. */
const FRESH_MS = 30_000;
/** How long the start waits for NATS before it goes on without. */
const FIRST_CONNECTION_MS = 3_000;
const LARGEST_ANNOUNCEMENTS = LARGEST_MESSAGE / 2;

export interface BeatsOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of the cluster. */
  readonly name: string;
  readonly host: string;
  readonly version: string;
  readonly protocol: number;
  /** Copies of the streams by which a host proves that it reaches a quorum. */
  readonly replicas?: number | undefined;
  readonly report: () => BeatReport;
  readonly onHeard?: (host: HeardHost) => void;
  /** This host reaches a quorum, and did not for more than 2 s, or never before. */
  readonly onReturned?: (awayMs: number) => void;
  /** Another process is this host, and began earlier, or has come further: this one has to stop. */
  readonly onNameTaken: (error: Error, by: NameTaker) => void;
}

/**
 * How this host stands to the others (docs/cluster.md, "Beats"). Twice a second it sends a beat, which the others hear, and behind it stores a message and reads it back, which
 * proves that it reaches a quorum of the servers of NATS (or that of another stream does, while this one has no leader).
 */
export class Beats {
  readonly run = randomUUID();
  readonly #options: BeatsOptions;
  readonly #drops: Drops;
  readonly #secondProof: SecondProof;
  readonly #trouble: Trouble;
  readonly #startedAt: number;
  readonly #presence: Presence<HeardHost>;
  readonly #claim: NameClaim;
  readonly #hearing: Hearing;
  readonly #figures = new Map<string, () => Json>();
  readonly #ends: (() => void)[] = [];
  #number = 0;
  #underWay = 0;
  #isPreparing = false;
  /** Of the stream; absent until it was opened. */
  #proof: QuorumProof | undefined;
  #isStarted = false;
  #isStopped = false;
  #cancel: () => void = () => {};

  constructor(options: BeatsOptions) {
    this.#options = options;
    this.#drops = new Drops('cluster.beat.dropped', options.clock, options.logger);
    this.#trouble = new Trouble(options.logger, 'cluster.beat.stream');
    this.#secondProof = new SecondProof({
      ...options,
      first: proofStream(options.name, FIRST, options.replicas).name,
      withinMs: ACKNOWLEDGED_WITHIN_MS,
      onProven: (sentAt) => this.#proven(sentAt),
    });
    this.#presence = new Presence(options.clock, options.host);
    this.#startedAt = options.clock.now();
    const own = { run: this.run, startedAt: this.#startedAt, upMs: () => this.upMs };
    this.#claim = new NameClaim({ ...options, ...own });
    this.#hearing = new Hearing({
      ...{ ...options, run: this.run, drops: this.#drops, presence: this.#presence, claim: this.#claim },
      sent: () => this.#number,
      onHeard: (heard) => options.onHeard?.(heard),
      onTaken: (error, by) => this.#taken(error, by),
    });
  }

  /**
   * Begins to beat. Where NATS does not answer within 3 s, it goes on without, and beats as soon as it does.
   *
   * @throws HF_CLUSTER_NAME_TAKEN a host of this name runs already
   */
  async start(): Promise<void> {
    const { link, name } = this.#options;
    this.#ends.push(
      link.subscribe(`hf.${name}.beat.*`, (message) => this.#hearing.hear(message)),
      this.#claim.answer(),
      link.onChange((isUp) => {
        if (!isUp) return;
        void this.#claim.check().then((error) => error && this.#taken(error, 'another'));
        if (this.#isStarted) void this.#beat();
      }),
    );
    if (await link.ready(FIRST_CONNECTION_MS)) {
      const error = await this.#claim.check();
      if (error) {
        this.stop();
        throw error;
      }
    }
    this.#isStarted = true;
    this.#claim.started();
    this.#presence.ticked();
    if (link.isUp) await this.#prepare();
    this.#secondProof.start();
    const first = this.#beat();
    this.#arm();
    await first;
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
    this.#hearing.stop();
    this.#secondProof.stop();
    for (const end of this.#ends.splice(0)) end();
  }

  standing(): ClusterStanding {
    return this.#presence.standing();
  }

  /** Since this host sent the newest beat that a quorum of the servers has, milliseconds. */
  get unacknowledgedMs(): number {
    return this.#presence.unacknowledgedMs;
  }

  /** The other hosts, also those that are silent now. */
  get heard(): ReadonlyMap<string, HeardHost> {
    return this.#presence.heard;
  }

  /** Lists a host no more, until it is heard again. */
  forget(host: string): void {
    this.#presence.forget(host);
  }

  /** The other hosts that were heard within 10 s; while this one is cut off, within the 10 s before. */
  live(): HeardHost[] {
    return this.#presence.live();
  }

  /** The other hosts that live; while this one is cut off, all that it knows of: they may live. By name. */
  get askable(): readonly string[] {
    return this.#presence.askable;
  }

  /** The names of the others that may answer: those that are known to live, and those that have not proven it yet, while they may. */
  get present(): ReadonlySet<string> {
    return this.#hearing.present;
  }

  /** The names of hosts of another protocol that live: they answer nothing. */
  get foreign(): ReadonlySet<string> {
    return this.#hearing.foreign;
  }

  /** How long this run has lasted, milliseconds. */
  get upMs(): number {
    return this.#presence.upMs;
  }

  /** Why this host cannot prove that it reaches a quorum, where a person has to fix it. */
  get trouble(): Error | undefined {
    return this.#trouble.error;
  }

  /** Beats that were dropped. */
  get dropped(): number {
    return this.#drops.count;
  }

  /** Figures that every beat carries. */
  announce(name: string, figures: () => Json): void {
    this.#figures.set(name, figures);
  }

  /** As in `Cluster`. */
  announced(name: string): ReadonlyMap<string, Json> {
    return this.#presence.announced(name);
  }

  /**
   * Resolves when it is known that no other process is this host; for about 10 s that need not be asked again.
   *
   * @throws HF_CLUSTER_NAME_TAKEN another one is: this host leaves
   * @throws HF_CLUSTER_NAME_UNKNOWN, HF_CLUSTER_UNREACHABLE ask again later
   */
  async nameIsOurs(): Promise<void> {
    // On one side of a cut the other one is not heard.
    if (this.standing().isIsolated) {
      const reason = 'it reaches no quorum of the servers';
      throw new ClusterError('HF_CLUSTER_NAME_UNKNOWN', { host: this.#options.host, reason });
    }
    try {
      await this.#claim.ours();
    } catch (error) {
      if (isCoded(error, 'HF_CLUSTER_NAME_TAKEN')) this.#taken(error, 'another');
      throw error;
    }
  }

  /** For a message that this host sends now. */
  stamp(): Stamp {
    return { from: this.#options.host, run: this.run, upMs: this.upMs };
  }

  /** Whether a message was sent by a host that lives, within the last half minute: else somebody sends an old one again. */
  isFresh({ from, run, upMs }: Stamp): boolean {
    if (run === this.run) return Math.abs(this.upMs - upMs) <= FRESH_MS;
    const known = this.heard.get(from);
    if (known?.run !== run) return false;
    const passedMs = this.#options.clock.monotonic() - known.heardMs;
    return passedMs <= FRESH_MS && Math.abs(known.upMs + passedMs - upMs) <= FRESH_MS;
  }

  #arm(): void {
    if (this.#isStopped) return;
    const { clock } = this.#options;
    this.#cancel = clock.after(BEAT_MS, () => {
      this.#presence.ticked();
      this.#arm();
      void this.#beat();
    });
  }

  /** Never rejects. */
  async #beat(): Promise<void> {
    const { link, logger, name, host } = this.#options;
    if (!link.isUp) return;
    if (this.unacknowledgedMs > UNACKNOWLEDGED_MS) this.#secondProof.ask();
    if (this.#underWay >= MOST_UNDER_WAY) return;
    this.#underWay += 1;
    try {
      const beat = this.#body();
      link.publish(`hf.${name}.beat.${host}`, JSON.stringify(beat));
      if (this.#proof) this.#stored(await this.#proof.store(), beat);
      else void this.#prepare();
    } catch (error) {
      logger.debug({ err: error }, 'cluster.beat.unacknowledged');
      void this.#prepare();
    } finally {
      this.#underWay -= 1;
    }
  }

  /** The servers had a beat before what they have stored since. */
  #stored(sentAt: number, { announced }: Beat): void {
    this.#presence.stored(sentAt, announced);
    this.#proven(sentAt);
  }

  #proven(sentAt: number): void {
    const awayMs = this.#presence.proven(sentAt);
    if (awayMs !== undefined) this.#options.onReturned?.(awayMs);
  }

  /** The stream is in memory: it is gone when all servers were started again. Never rejects. */
  async #prepare(): Promise<void> {
    const { link, clock, logger, name, replicas } = this.#options;
    if (this.#isPreparing) return;
    this.#isPreparing = true;
    const settings = proofStream(name, FIRST, replicas);
    try {
      const stream = await LinearStream.open(link, settings, { clock, logger });
      const withinMs = ACKNOWLEDGED_WITHIN_MS;
      this.#proof = new QuorumProof({ link, clock, stream, name, number: FIRST, withinMs });
      this.#trouble.note();
    } catch (error) {
      this.#trouble.note(error);
    }
    this.#isPreparing = false;
  }

  #body(): Beat {
    const { host, version, protocol, report } = this.#options;
    this.#number += 1;
    const beat: Beat = {
      ...{ host, run: this.run, version, protocol, number: this.#number },
      ...{ startedAt: this.#startedAt, upMs: this.upMs, ...report(), announced: this.#announcements() },
    };
    return beat;
  }

  #announcements(): Record<string, Json> {
    const announced: Record<string, Json> = {};
    let size = 0;
    for (const [name, figures] of this.#figures) {
      try {
        const value = figures();
        size += JSON.stringify(value).length;
        if (size > LARGEST_ANNOUNCEMENTS) this.#drops.add('figures too large', { name, bytes: size });
        else announced[name] = value;
      } catch (error) {
        this.#options.logger.error({ err: error, name }, 'cluster.beat.figures');
      }
    }
    return announced;
  }

  #taken(error: Error, by: NameTaker): void {
    if (this.#isStopped) return;
    this.stop();
    this.#options.onNameTaken(error, by);
  }
}
