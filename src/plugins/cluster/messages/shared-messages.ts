import type { ArrivedMessage, ClusterStanding, HostMessage } from '../../../core/contracts/cluster.ts';
import type { Logger } from '../../../core/host/logging/logger.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { EventLog } from '../../../core/kernel/log/event-log.ts';
import { version } from '../../../core/kernel/version.ts';
import { ClusterError } from '../errors.ts';
import type { ClusterPosition } from '../mirror/position.ts';
import type { NatsLink } from '../nats/link.ts';
import { CatchingUp } from './catching-up.ts';
import { EveryHost } from './every-host.ts';
import type { ReadPlace } from './hosts-ahead.ts';
import { SharedActors, type SharedActorsOptions } from './shared-actors.ts';
import type { SharedPlace } from './shared-order.ts';
import { StateExchange } from './state-exchange.ts';

export interface SharedMessagesOptions {
  readonly link: NatsLink;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Name of the cluster. */
  readonly name: string;
  readonly host: string;
  readonly replicas?: number | undefined;
  readonly services: SharedActorsOptions['services'] & {
    readonly log: Pick<EventLog, 'lastSeq' | 'whenDurable'>;
  };
  /** Where this host was when it stopped, and is noted. */
  readonly position: Pick<ClusterPosition, 'current' | 'set'>;
  /** Takes a message: what it led to is in the log when this resolves, durable or not. The next one waits for it; when it rejects, it is called again. */
  readonly deliver: (message: ArrivedMessage) => Promise<void>;
  /** The names of the other hosts that live, as far as it is heard; also of those that never answer, because they have another protocol. */
  readonly others: () => ReadonlySet<string>;
}

/**
 * What every host hears: the messages in one order, the states of actors for those that missed some, and whether this host knows all
 * that was said (docs/cluster.md, "What is guaranteed, and what not").
 */
export class SharedMessages {
  readonly #options: SharedMessagesOptions;
  readonly #everyHost: EveryHost;
  readonly #states: StateExchange;
  readonly #catchingUp: CatchingUp;
  /** The releases of hosts that said what this one does not understand, while it lacks that. */
  readonly #foreign = new Map<string, string>();
  /** The newest place that counts as delivered after a restart. */
  #place: SharedPlace | undefined;

  constructor(options: SharedMessagesOptions) {
    const { link, clock, logger, name, host, replicas, services, position, deliver, others } = options;
    const place = position.current.shared;
    this.#options = options;
    this.#place = place;
    this.#catchingUp = new CatchingUp({ clock, logger, mark: () => this.#everyHost.mark() });
    const actors = new SharedActors({
      ...{ services, host },
      send: (ref, state) => this.#everyHost.sendState(ref, state),
    });
    this.#states = new StateExchange({
      ...{ clock, logger, host, actors },
      // Who was never here, or has just come back, has not heard all of them yet.
      others: () => {
        const { hasCaughtUp, behindMs } = this.#catchingUp;
        return hasCaughtUp && behindMs === undefined ? others() : undefined;
      },
      want: (round) => this.#everyHost.want(round),
      sent: (rounds) => this.#everyHost.sent(rounds),
      onChange: () => this.#note(),
    });
    this.#everyHost = new EveryHost({
      ...{ link, clock, logger, name, host, replicas, deliver },
      ...(place && { place }),
      remember: (newest) => this.#remember(newest),
      onState: async (state) => {
        if (await actors.take(state)) return;
        this.#states.notUnderstood(state.from);
        if (this.#states.isIncomplete) this.#foreign.set(state.from, state.version);
      },
      onWanted: (round, from) => this.#states.wanted(round, from),
      onSent: (rounds, from) => this.#states.answered(rounds, from),
      onBroken: (reason, first, last) => {
        logger.warn({ reason, first, last }, 'cluster.messages_missed');
        this.#states.complete();
      },
      onForeign: (sender, why) => {
        const details = { from: sender?.from, theirs: sender?.version, version, why };
        logger.error(details, 'cluster.message_not_understood');
        if (sender) this.#foreign.set(sender.from, sender.version);
        this.#states.complete();
      },
    });
  }

  /** Begins to deliver, and to send what the others cannot know; does not wait for NATS. */
  start(): void {
    const { shared } = this.#options.position.current;
    this.#everyHost.start();
    if (shared?.isIncomplete) this.#states.complete();
    else if (shared?.isUnshared ?? true) this.#states.share();
  }

  /** Resolves when nothing is delivered any more. What waits to be sent is rejected. */
  async stop(): Promise<void> {
    this.#catchingUp.stop();
    this.#states.stop();
    await this.#everyHost.stop();
  }

  /** Has every host deliver a message, this one too. @throws see `EveryHost.send` */
  send(message: HostMessage): Promise<void> {
    return this.#everyHost.send(message);
  }

  /** This host reaches NATS again. @param awayMs for how long it did not */
  returned(awayMs: number): void {
    this.#catchingUp.returned(awayMs);
  }

  /** Another host has delivered the messages up to a place. */
  hearOf(other: string, place: ReadPlace): void {
    this.#everyHost.hearOf(other, place);
  }

  /** Why this host cannot read the messages, where a person has to fix it. */
  get trouble(): Error | undefined {
    return this.#everyHost.trouble;
  }

  /** The newest message that was delivered here, for beats. */
  get place(): ReadPlace {
    return this.#everyHost.place;
  }

  /** Which hosts said something that this one does not understand: until it has heard all that they know in another way, it is behind. */
  get foreign(): readonly HoldfastError[] {
    return [...this.#foreign].map(
      ([host, theirs]) => new ClusterError('HF_CLUSTER_VERSION', { host, theirs, version }),
    );
  }

  /** @returns how this host stands, when it hears the others so, and may lack what they said */
  standing(heard: ClusterStanding): ClusterStanding {
    const { missedMs, isIncomplete } = this.#states;
    const standing = { ...heard, ...(missedMs !== undefined && { missedMs }) };
    const behind = [this.#catchingUp.behindMs, this.#everyHost.behindMs].filter((ms) => ms !== undefined);
    // Since when is unknown: it may have been off for a day, or have its folder from an older image.
    const isNew = standing.isIsolated && !this.#catchingUp.hasCaughtUp;
    if (behind.length === 0 && !isIncomplete && !isNew) return standing;
    const isBehind = standing.isBehind || !standing.isIsolated || isNew;
    return { ...standing, isIsolated: true, isBehind, silentMs: Math.max(standing.silentMs, ...behind) };
  }

  /** What is not durable yet would not come again after a crash. */
  #remember(place: SharedPlace): void {
    const { log } = this.#options.services;
    const note = () => {
      this.#place = place;
      this.#note();
    };
    // The log was closed before it was durable: it comes again.
    void log.whenDurable(log.lastSeq()).then(note, () => {});
  }

  /** Of a host that has not found the stream yet nothing is noted: its next start is the first, too. */
  #note(): void {
    const { isIncomplete, isUnshared } = this.#states;
    if (!isIncomplete) this.#foreign.clear();
    if (this.#place) this.#options.position.set({ shared: { ...this.#place, isIncomplete, isUnshared } });
  }
}
