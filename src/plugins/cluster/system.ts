import type {
  ArrivedMessage,
  Cluster,
  ClusterStanding,
  HostMessage,
  Singleton,
} from '../../core/contracts/cluster.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { type HoldfastError, isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { Json } from '../../core/kernel/json.ts';
import { CLOCK } from '../../core/kernel/log/record.ts';
import { openLogKey } from '../../core/kernel/log/signing.ts';
import { version } from '../../core/kernel/version.ts';
import { singletonActor } from './actors.ts';
import { ElapsedClock } from './elapsed-clock.ts';
import { ClusterKey } from './keys.ts';
import { folderIdentity } from './leases/folder.ts';
import { Leases } from './leases/leases.ts';
import { LedgerStream } from './leases/ledger-stream.ts';
import { Asks } from './messages/asks.ts';
import { HolderMessages } from './messages/holder.ts';
import { SharedMessages } from './messages/shared-messages.ts';
import type { LogStreams } from './mirror/incarnations.ts';
import { Outbox } from './mirror/outbox.ts';
import { ClusterPosition } from './mirror/position.ts';
import { PROTOCOL } from './nats/body.ts';
import { NatsLink } from './nats/link.ts';
import type { ClusterOptions } from './options.ts';
import { Beats } from './presence/beats.ts';
import { ClusterRecords } from './records.ts';
import { Handover } from './takeover/handover.ts';
import { TakeoverNotices } from './takeover/notices.ts';

/** Of a message, less its headers: what NATS takes unless it is told otherwise. Bytes. */
const LARGEST_BODY = 1_000_000;

/**
 * This host in the cluster: the parts of the plugin, put together (docs/cluster.md). It works without NATS as far as that goes, and
 * goes on as soon as there is a connection.
 */
export class ClusterSystem implements Cluster {
  readonly name: string;
  readonly host: string;
  readonly link: NatsLink;
  /** By which it is known how long ago another host was heard. */
  readonly clock: Clock;
  readonly streams: LogStreams;
  readonly beats: Beats;
  readonly leases: Leases;
  readonly outbox: Outbox;
  readonly shared: SharedMessages;
  readonly #key: ClusterKey;
  readonly #position: ClusterPosition;
  readonly #holder: HolderMessages;
  readonly #asks: Asks;
  readonly #services: Services;
  readonly #records: ClusterRecords;
  #handover: Handover | undefined;
  #notices: TakeoverNotices | undefined;
  #leaving: Promise<void> | undefined;
  #leftBecause: Error | undefined;
  #deliver: (message: ArrivedMessage) => Promise<void> = async () => {};

  private constructor(services: Services, options: ClusterOptions, key: ClusterKey, link: NatsLink) {
    const { logger, dataDir, log, actors } = services;
    const { name, host, replicas, leaseMs: ttlMs, maxStreamBytes: maxBytes } = options;
    // What is known of the others is as old as it is for them. A lease has both: effects are compared with the monotonic clock.
    const clock = new ElapsedClock(services.clock);
    const common = { link, clock, logger, name, host };
    const deliver = (message: ArrivedMessage) => this.#deliver(message);
    this.name = name;
    this.host = host;
    this.link = link;
    this.#key = key;
    this.#services = services;
    this.clock = clock;
    const records = new ClusterRecords({ actors, clock, logger });
    this.#records = records;
    this.streams = { link, cluster: name, clock, logger };
    this.#position = ClusterPosition.open(dataDir, clock, (error) =>
      logger.warn({ err: error }, 'cluster.position'),
    );
    this.beats = new Beats({
      ...{ ...common, version, protocol: PROTOCOL, replicas },
      report: () => ({
        shared: this.shared.place,
        lag: this.outbox.lag().records,
        holds: [...(this.#handover?.running ?? [])],
      }),
      onHeard: ({ host: other, shared }) => this.shared.hearOf(other, shared),
      onReturned: (awayMs) => this.shared.returned(awayMs),
      onNameTaken: (error, by) => {
        logger.fatal({ err: error, by }, 'cluster.name_taken');
        if (by === 'a copy') this.leases.abandon(error.message);
        this.#leaveBecause(error);
      },
    });
    this.shared = new SharedMessages({
      ...{ ...common, replicas, services, deliver, position: this.#position },
      others: () => this.beats.present.union(this.beats.foreign),
    });
    this.#holder = new HolderMessages({
      ...{ ...common, beats: this.beats, deliver },
      // In the log of this host alone a successor would not find it.
      known: () => this.outbox.mirrored(log.lastSeq()),
    });
    this.#asks = new Asks({ ...common, beats: this.beats });
    this.onAsked('cluster.leaving', (_, from) => void records.left(from));
    this.outbox = new Outbox({
      ...{ link, cluster: name, host, dataDir, position: this.#position, log, clock, logger },
      key: openLogKey(dataDir).text,
      limits: { maxBytes, replicas },
      largest: LARGEST_BODY,
      nameIsOurs: () => this.beats.nameIsOurs(),
      states: () => {
        // Also of what has ended here: whoever takes it over goes on from there.
        // By the clock, how long timers truly ran; by the tenures, which of them began here.
        const types = [...(this.#handover?.actorTypes ?? []), CLOCK.type, singletonActor.type];
        const known = actors.knownStates(types);
        return { seq: log.lastSeq(), states: known.map((state) => JSON.stringify(state)) };
      },
      typesOf: (singleton) => this.#handover?.typesOf(singleton) ?? [],
      begunBy: (singleton) => this.#recorded(singleton)?.begunBy,
      onFenced: ({ singleton, token, by }) => this.#handover?.fenced(singleton, token, by),
      onOrphaned: (branch) => records.orphaned(branch, host),
      onIncarnation: ({ incarnation, reason }) => records.replaced(host, incarnation, reason),
      onTrouble: (error) => {
        if (error) logger.warn({ err: error }, 'cluster.mirror_stands_still');
        // Effects would wait for its stream for ever.
        if (isCoded(error, 'HF_CLUSTER_OLD_FOLDER')) this.#leaveBecause(error);
      },
    });
    this.leases = new Leases({
      ...{ clock: services.clock, logger },
      log: new LedgerStream({ link, clock, logger, name, replicas, ttlMs }),
      self: { host, folder: folderIdentity(dataDir, host, services.clock), version, ttlMs },
      mirror: () => mirrorOf(this.outbox),
      obstacle: () => obstacleOf(log),
      onGained: (lease, last) => this.#handover?.gained(lease, last),
      onLost: (singleton, reason) => this.#handover?.lost(singleton, reason),
      onReleasing: (singleton, reason) => this.#handover?.release(singleton, reason),
      onRefused: (refusal) => {
        if (refusal) records.refused(refusal.host ?? 'unknown', refusal.version ?? 'another');
      },
    });
  }

  /**
   * Joins the cluster. Without a connection to NATS it goes on alone after some seconds, and joins later.
   *
   * @throws HF_CLUSTER_NAME_TAKEN another host has this name; HF_CLUSTER_KEY, HF_CONFIG_SECRET_* the key's file
   */
  static async join(services: Services, options: ClusterOptions): Promise<ClusterSystem> {
    const { clock, logger } = services;
    const key = ClusterKey.open(options.keyFile);
    const link = await NatsLink.open(options, { clock, logger, key });
    const system = new ClusterSystem(services, options, key, link);
    try {
      await system.beats.start();
    } catch (error) {
      await link.close();
      throw error;
    }
    system.#asks.start();
    return system;
  }

  key(purpose: string): Buffer {
    return this.#key.derive(purpose);
  }

  standing(): ClusterStanding {
    return this.shared.standing(this.beats.standing());
  }

  onArrived(deliver: (message: ArrivedMessage) => Promise<void>): void {
    this.#deliver = deliver;
  }

  compete(singletons: readonly Singleton[]): void {
    if (this.#leaving !== undefined) return; // another host has its name
    const { leases, streams, host } = this;
    this.#handover = new Handover(singletons, {
      ...{ services: this.#services, host, streams, leases, holder: this.#holder, release: version },
      records: this.#records,
      recorded: (singleton) => this.#recorded(singleton),
      mirrored: (seq) => this.outbox.mirrored(seq),
    });
    const names = singletons.map(({ name }) => name);
    this.#notices = new TakeoverNotices(names, {
      ...{ services: this.#services, host, records: this.#records, asks: this, outbox: this.outbox },
      recorded: (singleton) => this.#recorded(singleton),
      present: () => this.beats.present,
    });
    this.outbox.start();
    this.shared.start();
    for (const name of names) this.leases.offer(name);
    this.leases.start();
    const watched = {
      host,
      heard: () => this.beats.heard,
      standing: () => this.standing(),
      lag: () => this.outbox.lag(),
      holderOf: (singleton: string) => this.holderOf(singleton),
    };
    this.#handover.noteTakeovers();
    this.#records.watch(watched, names);
    this.#notices.start();
  }

  /** Why this host has left the cluster, while it goes on alone. */
  get leftBecause(): Error | undefined {
    return this.#leftBecause;
  }

  #leaveBecause(error: Error): void {
    this.#leftBecause = error;
    void this.leave();
  }

  /** Why this host leaves singletons to others, or refuses calls, until all hosts have releases that go together. */
  get outdated(): readonly HoldfastError[] {
    return [...(this.#handover?.outdated ?? []), ...this.shared.foreign];
  }

  /** What was recorded here of a singleton's tenures. */
  #recorded(singleton: string) {
    return this.#services.actors.get(singletonActor, singleton)?.context;
  }

  holderOf(singleton: string): string | undefined {
    return this.leases.table().find((row) => row.singleton === singleton)?.holder?.host;
  }

  toEveryHost(message: HostMessage): Promise<void> {
    return this.shared.send(message);
  }

  toHolder(singleton: string, message: HostMessage): Promise<void> {
    return this.#holder.send(singleton, message);
  }

  mirrored(seq: number): Promise<void> {
    return this.outbox.mirrored(seq);
  }

  ask(question: string, body: Json, timeoutMs: number) {
    return this.#asks.ask(question, body, timeoutMs);
  }

  onAsked(question: string, answer: Parameters<Cluster['onAsked']>[1]): void {
    this.#asks.onAsked(question, answer);
  }

  announce(name: string, figures: () => Json): void {
    this.beats.announce(name, figures);
  }

  announced(name: string): ReadonlyMap<string, Json> {
    return this.beats.announced(name);
  }

  /** Ends what runs here, sends what is left of the log, releases the leases, and leaves: once. */
  leave(): Promise<void> {
    this.#leaving ??= this.#leave();
    return this.#leaving;
  }

  async #leave(): Promise<void> {
    await this.#handover?.stop('this host stops');
    this.#records.stop();
    this.#notices?.stop();
    await this.ask('cluster.leaving', null, LEAVE_MS).catch(() => {});
    this.#holder.stop();
    this.#asks.stop();
    await this.shared.stop();
    await this.outbox.stop();
    if (this.#handover) await this.leases.stop();
    this.beats.stop();
    await this.#position.close();
    await this.link.close();
  }
}

/** For the others to hear that this host stops. */
const LEAVE_MS = 300;

/** What cannot be recorded is not done. */
function obstacleOf(log: Services['log']): string | undefined {
  const { state, reason } = log.status();
  return state === 'frozen' ? `its log takes nothing: ${reason}` : undefined;
}

function mirrorOf({ position: { incarnation, seq, states } }: Outbox) {
  if (incarnation === 0) return undefined;
  return { incarnation: String(incarnation), seq, ...(states !== undefined && { states }) };
}
