import { type Envelope, subscriberFailed } from '../../../bus/bus.ts';
import type { ArrivedMessage, Cluster, HostMessage } from '../../contracts/cluster.ts';
import type { Route } from '../../kernel/actors/definition.ts';
import type { Sent } from '../../kernel/actors/system.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { KernelError } from '../../kernel/errors/kernel-error.ts';
import { actorRef } from '../../kernel/ids.ts';
import { toPlain } from '../../kernel/json.ts';
import type { Origin } from '../../kernel/log/record.ts';
import { HostError } from '../errors/host-error.ts';
import type { RuntimeServices } from '../plugin/host.ts';
import type { Owned } from '../plugin/registrations.ts';

/** Where the actors of singletons are that can be on another host. */
export interface Placement {
  /** The singleton that actors of a type belong to; undefined for those that are on every host. */
  singletonOf(actorType: string): string | undefined;
  /** Whether the actors of a singleton take events here. */
  takesEvents(singleton: string): boolean;
  /** Whether its plugins run here. */
  isRunning(singleton: string): boolean;
}

type Routed = Pick<RuntimeServices, 'bus' | 'actors' | 'pendingReplies' | 'log' | 'logger' | 'metrics'>;

/** Messages of one topic that are on their way to other hosts; further ones are dropped. */
const MOST_UNDER_WAY = 1_000;

/**
 * Brings what is published on the bus to the actors that routes name, on whichever host they are. A request that waits for a
 * decision is refused while the log cannot take one; other messages wait in the mailbox.
 */
export class Routes {
  readonly #services: Routed;
  readonly #placement: Placement;
  readonly #dropped: ReturnType<Routed['metrics']['counter']>;
  /** Routes that lead to every host, by topic; none without a cluster. */
  readonly #shared = new Map<string, Owned<Route>[]>();
  /** Routes to actors that can be on another host, by `<singleton> <topic>`. */
  readonly #moving = new Map<string, Owned<Route>[]>();
  #cluster: Cluster | undefined;
  /** Messages to every host that were published before the other hosts were known. */
  #early: Envelope[] | undefined = [];
  /** How many are on their way to other hosts, by `<singleton> <topic>`, or the topic of routes to every host. */
  readonly #underWay = new Map<string, number>();

  /** @param placement absent without a cluster: all actors are here */
  constructor(routes: readonly Owned<Route>[], services: Routed, placement?: Placement) {
    this.#services = services;
    this.#placement = placement ?? ALL_HERE;
    this.#dropped = services.metrics.counter('events_dropped_total', {
      help: 'Events that found the mailbox full, or did not reach the host that they were for.',
      labels: ['topic'],
    });
    for (const route of routes) {
      const singleton = this.#placement.singletonOf(route.to);
      if (placement && route.everyHost) this.#share(route);
      else if (singleton === undefined) this.#subscribe(route, () => true);
      else this.#follow(route, singleton);
    }
  }

  /**
   * From here on messages travel between the hosts. Called when the plugins have started.
   *
   * @param cluster undefined when the plugin that knows the other hosts has failed: what is for them is dropped
   */
  join(cluster: Cluster | undefined): void {
    cluster?.onArrived((message) => this.#arrived(message, cluster.host));
    this.#cluster = cluster;
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const envelope of early) this.#toEveryHost(envelope);
  }

  #subscribe(route: Owned<Route>, isHere: () => boolean): void {
    const { bus } = this.#services;
    bus.subscribe(route.topic, `route of ${route.owner}`, (envelope: Envelope) => {
      if (isHere() && !this.#isRefused(envelope)) this.#deliver(route, envelope);
    });
  }

  #share(route: Owned<Route>): void {
    const { topic } = route;
    const routes = this.#shared.get(topic.name);
    if (routes) {
      routes.push(route);
      return;
    }
    this.#shared.set(topic.name, [route]);
    this.#services.bus.subscribe(topic, 'routes to every host', (envelope: Envelope) =>
      this.#toEveryHost(envelope),
    );
  }

  #follow(route: Owned<Route>, singleton: string): void {
    const { topic } = route;
    const isHere = () => this.#placement.takesEvents(singleton);
    this.#subscribe(route, isHere);
    if (route.ownHost) return;
    const name = `${singleton} ${topic.name}`;
    const routes = this.#moving.get(name);
    if (routes) {
      routes.push(route);
      return;
    }
    this.#moving.set(name, [route]);
    this.#services.bus.subscribe(topic, `routes to ${singleton}`, (envelope: Envelope) => {
      if (!isHere()) this.#send(name, envelope, (cluster, message) => cluster.toHolder(singleton, message));
    });
  }

  #toEveryHost(envelope: Envelope): void {
    if (this.#early && this.#early.length < MOST_UNDER_WAY) {
      this.#early.push(envelope);
      return;
    }
    if (this.#isRefused(envelope)) return;
    const { pendingReplies } = this.#services;
    this.#send(
      envelope.topic,
      envelope,
      (cluster, message) => cluster.toEveryHost(message),
      (error) => pendingReplies.fail(envelope.correlation, error),
    );
  }

  /** @param way `<singleton> <topic>`, or the topic @param failed hears why it did not get there, beside the log */
  #send(
    way: string,
    envelope: Envelope,
    send: (cluster: Cluster, message: HostMessage) => Promise<void>,
    failed: (error: unknown) => void = () => {},
  ): void {
    const { topic, payload, correlation, cause } = envelope;
    const cluster = this.#cluster;
    const underWay = this.#underWay.get(way) ?? 0;
    const refusal = this.#refusal(envelope, underWay);
    const drop = (error: unknown) => {
      failed(error);
      this.#drop(topic, { correlation }, error);
    };
    if (!cluster || refusal) {
      drop(refusal);
      return;
    }
    this.#underWay.set(way, underWay + 1);
    const sent = async () =>
      send(cluster, {
        topic,
        payload: toPlain(payload, topic),
        correlation,
        ...(cause !== undefined && { cause }),
      });
    void sent()
      .catch(drop)
      .finally(() => {
        this.#underWay.set(way, (this.#underWay.get(way) ?? 1) - 1);
      });
  }

  /** Why a message cannot go to other hosts. */
  #refusal({ topic, blobs }: Envelope, underWay: number): Error | undefined {
    if (blobs) return new Error('a message with sealed bodies stays on its host');
    if (this.#cluster && underWay < MOST_UNDER_WAY) return undefined;
    const where = this.#cluster ? 'too many messages wait for other hosts' : 'the other hosts are not known';
    return new HostError('HF_PLUGIN_ELSEWHERE', { what: `What ${topic} is for`, where });
  }

  /**
   * Resolves when the actors have decided what it led to; while the log has no room, it waits.
   *
   * @throws HF_PLUGIN_ELSEWHERE, HF_ACTOR_ELSEWHERE it is for a singleton that does not run here
   * @throws HF_PLUGIN_MESSAGE its payload does not fit the topic as this host knows it
   */
  async #arrived(message: ArrivedMessage, host: string): Promise<void> {
    // In the mailbox it would count as taken before the log has it, and be refused when too much waits there.
    await this.#services.actors.whenFree();
    const { topic, payload, correlation, cause, from, order, sentAt, singleton } = message;
    if (singleton !== undefined && !this.#placement.isRunning(singleton)) {
      const where = `${host} does not hold it`;
      throw new HostError('HF_PLUGIN_ELSEWHERE', { what: `Singleton ${singleton}`, where });
    }
    const routes =
      singleton === undefined ? this.#shared.get(topic) : this.#moving.get(`${singleton} ${topic}`);
    const parsed = routes?.[0]?.topic.schema.safeParse(payload);
    const drop = (error: Error) =>
      this.#drop(topic, { correlation, from, ...(order !== undefined && { order }) }, error);
    if (!routes || !parsed) {
      // A host of another release may know other topics.
      drop(new Error('no route here takes it'));
      return;
    }
    if (!parsed.success) {
      const reason = parsed.error.issues[0]?.message ?? 'it does not fit the topic';
      const error = new HostError('HF_PLUGIN_MESSAGE', { host: from, topic, reason });
      drop(error);
      throw error;
    }
    const isOwn = from === host;
    const envelope: Envelope = {
      ...{ topic, payload: parsed.data, correlation },
      ...(isOwn && cause !== undefined && { cause }),
      ...(order !== undefined && { order }),
      ...(sentAt !== undefined && { sentAt }),
    };
    const origin = isOwn ? undefined : { host: from, ...(cause !== undefined && { seq: cause }) };
    await Promise.all(routes.map((route) => this.#deliverArrived(route, envelope, origin)));
  }

  /** One route that fails keeps neither the others nor the next message from it. */
  async #deliverArrived(route: Owned<Route>, envelope: Envelope, origin: Origin | undefined): Promise<void> {
    try {
      // What one message leads to may fill the log: the rest of it waits in the mailbox.
      await Promise.all(this.#deliver(route, envelope, origin).map((sent) => sent.decided()));
    } catch (error) {
      if (isCoded(error, 'HF_ACTOR_ELSEWHERE')) throw error; // the work ended here while this waited for the log
      const message = error instanceof Error ? error.message : String(error);
      const failure = {
        owner: `route of ${route.owner}`,
        topic: envelope.topic,
        fault: 'subscriber',
      } as const;
      this.#services.bus.publish(subscriberFailed, { ...failure, message });
    }
  }

  #deliver({ to, map }: Route, envelope: Envelope, origin?: Origin): Sent[] {
    const { actors, pendingReplies } = this.#services;
    const { topic, correlation, cause, blobs } = envelope;
    const sent: Sent[] = [];
    for (const { key, event } of map(envelope)) {
      try {
        sent.push(actors.deliver(actorRef(to, key), event, { correlation, cause, origin, blobs }));
      } catch (error) {
        pendingReplies.fail(correlation, error);
        if (!isCoded(error, 'HF_ACTOR_OVERLOADED')) throw error;
        this.#drop(topic, { actor: actorRef(to, key), correlation }, error);
      }
    }
    return sent;
  }

  /** The log cannot take a decision that a request waits for: it is answered now. */
  #isRefused({ correlation }: Envelope): boolean {
    const { actors, pendingReplies, log } = this.#services;
    if (actors.accepting() || !pendingReplies.has(correlation)) return false;
    const { reason = 'too much waits for it already' } = log.status();
    pendingReplies.fail(correlation, new KernelError('HF_LOG_WRITE', { reason }));
    return true;
  }

  #drop(topic: string, of: Readonly<Record<string, unknown>>, error: unknown): void {
    this.#dropped.inc({ topic });
    const why = isCoded(error) ? { code: error.code, reason: error.what } : { reason: String(error) };
    this.#services.logger.error({ ...why, topic, ...of }, 'event.dropped');
  }
}

const ALL_HERE: Placement = {
  singletonOf: () => undefined,
  takesEvents: () => true,
  isRunning: () => true,
};
