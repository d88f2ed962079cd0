import type { ArrivedMessage, HostMessage } from '../../../core/contracts/cluster.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Json } from '../../../core/kernel/json.ts';
import { Drops } from '../nats/body.ts';
import type { NatsLink } from '../nats/link.ts';
import type { StreamMessage } from '../nats/stream-message.ts';
import { HostsAhead, type ReadPlace } from './hosts-ahead.ts';
import { Outgoing } from './outgoing.ts';
import { type Outcome, type Sender, type SharedBody, SharedOrder, type SharedPlace } from './shared-order.ts';
import { SharedReader } from './shared-reader.ts';

/** Longer than an election of NATS takes as a rule. */
const WITHIN_MS = 15_000;
const REMEMBER_MS = 500;
const MAX_BYTES = 64 * 1024 * 1024;

/** An actor's state, for hosts that join or have missed messages. */
export interface ArrivedState extends Sender {
  readonly ref: string;
  readonly state: Json;
}

export interface EveryHostOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of the cluster. */
  readonly name: string;
  readonly host: string;
  readonly replicas?: number | undefined;
  /** Where this host was when it stopped. */
  readonly place?: SharedPlace | undefined;
  /** Called at most twice a second. */
  readonly remember: (place: SharedPlace) => void;
  /**
   * Takes a message. The next one waits for it; when it throws, it is called again until it does not. HF_PLUGIN_MESSAGE says that
   * it is not understood.
   */
  readonly deliver: (message: ArrivedMessage) => Promise<void>;
  /** The next message waits for it. */
  readonly onState: (state: ArrivedState) => Promise<void>;
  /** A host wants the states that the others have. */
  readonly onWanted: (round: string, from: string) => void;
  /** A host has sent what it had, for those who wanted it in these rounds. */
  readonly onSent: (rounds: readonly string[], from: string) => void;
  /** What happened to the stream while this host was away, or to the servers: hosts may know different things now, and exchange states. */
  readonly onBroken: (reason: 'missed' | 'rewound', first: number, last: number) => void;
  /** A host wrote what this one does not understand, and it may matter. @param why in words */
  readonly onForeign: (sender: Sender | undefined, why: string) => void;
  /** How long a message may take; 15,000 unless set. Milliseconds. */
  readonly withinMs?: number;
  /** Between two looks without a hint; 2,000 unless set. Milliseconds. */
  readonly pollMs?: number;
  /** The most that the stream may hold: older messages make room; 64 MiB unless set. Bytes. */
  readonly maxBytes?: number;
}

/**
 * Messages to every host (docs/cluster.md, "Messages between hosts"): each host delivers what stands on the shared stream, all in the same
 * order, at least once. What a host has delivered counts, not what it sent.
 */
export class EveryHost {
  readonly #options: EveryHostOptions;
  readonly #order: SharedOrder;
  readonly #reader: SharedReader;
  readonly #outgoing: Outgoing;
  readonly #drops: Drops;
  readonly #hostsAhead: HostsAhead;
  /** What is being delivered, and how many messages of it were. */
  #delivering: SharedBody | undefined;
  #taken = 0;
  #cancel: (() => void) | undefined;
  /** Ends the wait for what is being delivered. */
  #interrupt: () => void = () => {};
  #isStopped = false;

  constructor(options: EveryHostOptions) {
    const { link, clock, logger, name, host, replicas, withinMs = WITHIN_MS } = options;
    this.#options = options;
    this.#order = new SharedOrder(options.place);
    this.#drops = new Drops('cluster.messages.dropped', clock, logger);
    const now = () => clock.monotonic();
    this.#hostsAhead = new HostsAhead(now, () => this.place);
    this.#reader = new SharedReader({
      ...{ link, clock, logger, order: this.#order, pollMs: options.pollMs },
      settings: {
        ...{ name: `HF_${name}_SHARED`, subjects: [`hf.${name}.shared`], replicas },
        ...{ maxBytes: options.maxBytes ?? MAX_BYTES, discard: 'old', needsCopies: true },
      },
      onOutcome: (outcome, message) => this.#take(outcome, message),
      onMissed: (first, last) => {
        this.#outgoing.again();
        options.onBroken('missed', first, last);
      },
      onRewound: (from, to) => {
        this.#outgoing.again();
        options.onBroken('rewound', to + 1, from);
      },
      onCaughtUp: () => this.#outgoing.wake(),
    });
    this.#outgoing = new Outgoing({
      ...{ clock, host, order: this.#order, withinMs },
      stream: () => this.#reader.stream,
      onStored: () => this.#reader.poke(),
      onDoubt: () => this.#reader.doubt(),
    });
  }

  /** Begins to deliver; does not wait for NATS. */
  start(): void {
    this.#reader.start();
  }

  /** Resolves when nothing is delivered any more. What waits to be sent is rejected; what waits to be taken comes again at the next start. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#outgoing.stop();
    const stopped = this.#reader.stop();
    this.#interrupt();
    await stopped;
    this.#cancel?.();
    this.#remember();
  }

  /**
   * Has every host deliver a message, this one too.
   *
   * @throws HF_CLUSTER_ISOLATED it was not delivered here in time; its text says whether it may still arrive
   * @throws HF_CLUSTER_BUSY, HF_CLUSTER_MESSAGE_SIZE (64 KiB)
   */
  send({ topic, payload, correlation, cause }: HostMessage): Promise<void> {
    const message = { payload, correlation, ...(cause !== undefined && { cause }) };
    return this.#outgoing.send({ kind: 'messages', topic, messages: [message] });
  }

  /** Has every host hear the state of an actor. @throws HF_CLUSTER_ISOLATED, HF_CLUSTER_BUSY, HF_CLUSTER_MESSAGE_SIZE (512 KiB) */
  sendState(ref: string, state: Json): Promise<void> {
    return this.#outgoing.send({ kind: 'state', ref, state });
  }

  /** Has every host hear that this one wants the states that they have. @throws HF_CLUSTER_ISOLATED, HF_CLUSTER_BUSY */
  want(round: string): Promise<void> {
    return this.#outgoing.send({ kind: 'wanted', round });
  }

  /**
   * Has every host hear that this one has sent what it had, for those who wanted it.
   *
   * @throws HF_CLUSTER_ISOLATED, HF_CLUSTER_BUSY; also when the stream was lost before it was delivered here: so may be what was sent before
   */
  sent(rounds: readonly string[]): Promise<void> {
    return this.#outgoing.send({ kind: 'sent', rounds: [...rounds] });
  }

  /** Resolves when this host has delivered everything that was stored before. @throws HF_CLUSTER_ISOLATED, HF_CLUSTER_BUSY */
  mark(): Promise<void> {
    return this.#outgoing.send({ kind: 'mark' });
  }

  /** The newest message that was delivered here, for beats. */
  get place(): ReadPlace {
    return {
      incarnation: this.#order.incarnation,
      seq: this.#delivering ? this.#order.seq - 1 : this.#order.seq,
    };
  }

  /** Another host has delivered this one: reads on at once when it is newer. */
  hearOf(host: string, place: ReadPlace): void {
    this.#hostsAhead.hear(host, place);
    const { incarnation, seq } = place;
    if (seq === 0) return;
    if (incarnation !== this.#order.incarnation) this.#reader.doubt();
    else if (seq > this.#order.seq) this.#reader.poke();
  }

  /**
   * For how long it has lacked what another host has delivered, or what it knows to stand on the stream, milliseconds; undefined while
   * that may just be on its way.
   */
  get behindMs(): number | undefined {
    const behind = [this.#hostsAhead.behindMs, this.#reader.behindMs].filter((ms) => ms !== undefined);
    return behind.length === 0 ? undefined : Math.max(...behind);
  }

  /** Why the stream cannot be read, where a person has to fix it. */
  get trouble(): Error | undefined {
    return this.#reader.trouble;
  }

  async #take(outcome: Outcome, { seq, at }: StreamMessage): Promise<void> {
    if (outcome.kind === 'foreign') {
      this.#drops.add('foreign', { seq });
      this.#options.onForeign(outcome.sender, 'it is of another protocol');
      return;
    }
    if (outcome.kind === 'dropped') {
      this.#drops.add(outcome.reason, { seq });
      if (outcome.reason === 'late') this.#outgoing.late(outcome.id);
      return;
    }
    const { body, order } = outcome;
    if (this.#delivering !== body) this.#taken = 0;
    this.#delivering = body;
    if (!(await this.#isDelivered(body, order, at))) return;
    this.#delivering = undefined;
    if (body.from === this.#options.host) this.#outgoing.delivered(body.id);
    this.#cancel ??= this.#options.clock.after(REMEMBER_MS, () => this.#remember());
  }

  /** A log that takes nothing lets it wait until it does, or until the stop. @returns whether it was taken */
  #isDelivered(body: SharedBody, order: number, sentAt: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      this.#interrupt = () => resolve(false);
      this.#deliver(body, order, sentAt).then(() => resolve(true), reject);
    });
  }

  async #deliver(body: SharedBody, order: number, sentAt: number): Promise<void> {
    const { onState, onWanted, onSent } = this.#options;
    if (body.kind === 'messages') {
      // When one of them cannot be taken, it comes again, and those before it do not.
      for (const message of body.messages.slice(this.#taken)) {
        if (this.#isStopped) return;
        const { from, topic } = body;
        await this.#hand(body, { ...message, from, topic, order: order + this.#taken, sentAt });
        this.#taken += 1;
      }
      return;
    }
    if (body.kind === 'wanted') onWanted(body.round, body.from);
    if (body.kind === 'sent') onSent(body.rounds, body.from);
    if (body.kind === 'state') {
      const { from, version, ref, state } = body;
      await onState({ from, version, ref, state });
    }
  }

  async #hand(sender: Sender, message: ArrivedMessage): Promise<void> {
    try {
      await this.#options.deliver(message);
    } catch (error) {
      if (!isCoded(error, 'HF_PLUGIN_MESSAGE')) throw error;
      this.#options.onForeign(sender, error.what);
    }
  }

  /** A message that is being delivered is not remembered before it is. */
  #remember(): void {
    this.#cancel = undefined;
    const place = this.#order.place;
    // It has not found the stream yet: it was not there.
    if (place.incarnation === '') return;
    this.#options.remember(
      this.#delivering ? { ...place, seq: place.seq - 1, trail: place.trail.slice(0, -1) } : place,
    );
  }
}
