import { systemClock } from '../../../src/core/kernel/clock.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { ClusterKey } from '../../../src/plugins/cluster/keys.ts';
import { openHostLog } from '../../../src/plugins/cluster/mirror/host-log.ts';
import { namesOf, newestIncarnation } from '../../../src/plugins/cluster/mirror/incarnations.ts';
import type { NatsLink } from '../../../src/plugins/cluster/nats/link.ts';
import { spawnHoldfast } from '../cli.ts';
import { openLink, silent } from '../cluster.ts';
import { type NatsServers, startNats } from '../nats.ts';
import type { NatsProxy } from '../nats-proxy.ts';
import type { Scope } from '../scope.ts';
import { read, until } from '../until.ts';
import { Callers } from './callers.ts';
import { explainStall } from './explain-stall.ts';
import type { Fault } from './faults.ts';
import { Hosts } from './hosts.ts';
import { journalViolations } from './journal-rules.ts';
import { storyViolations, timelineOf, untoldIn } from './story-rules.ts';

const NAMES = ['one', 'two', 'three'] as const;
const MINUTE = 60_000;
/** The hosts disagree about the time of day. */
const AHEAD_MS: Readonly<Record<string, number>> = { one: 0, two: 7 * MINUTE, three: -4 * MINUTE };
const CLUSTER = 'tests';

/** A disk of a server holds so much. */
const DISK_MEGABYTES = 64;

export interface FaultyClusterWish {
  readonly leaseMs: number;
  /** Servers of NATS: three with a copy of each stream (R3) on each, or one (R1). 3 unless set. */
  readonly servers?: 1 | 3;
}

/**
 * Servers of NATS and three hosts, each host with a link of its own to each server, clients that call tools at all hosts, and what
 * is wrong with what was done.
 */
export class FaultyCluster {
  readonly nats: NatsServers;
  readonly hosts: Hosts;
  readonly callers: Callers;
  readonly leaseMs: number;
  readonly #t: Scope;
  readonly #links: ReadonlyMap<string, readonly NatsProxy[]>;
  readonly #admin: NatsLink;

  private constructor(
    t: Scope,
    nats: NatsServers,
    hosts: Hosts,
    callers: Callers,
    links: ReadonlyMap<string, readonly NatsProxy[]>,
    admin: NatsLink,
    leaseMs: number,
  ) {
    this.#t = t;
    this.nats = nats;
    this.hosts = hosts;
    this.callers = callers;
    this.leaseMs = leaseMs;
    this.#links = links;
    this.#admin = admin;
  }

  /** Starts all, and waits for the first stroke of the pump. */
  static async start(t: Scope, { leaseMs, servers: count = 3 }: FaultyClusterWish): Promise<FaultyCluster> {
    const nats = await startNats(t, {
      servers: count,
      isSplittable: count > 1,
      diskMegabytes: DISK_MEGABYTES,
    });
    const links = new Map<string, readonly NatsProxy[]>();
    for (const name of NAMES)
      links.set(name, await Promise.all(nats.urls().map((_, server) => nats.proxyTo(server))));
    const servers = (host: string) => (links.get(host) ?? []).map(({ url }) => url).join(',');
    const callers = await Callers.open(t);
    const clockAheadMs = (host: string) => AHEAD_MS[host] ?? 0;
    const { plugins } = callers;
    const hosts = new Hosts(t, { servers, leaseMs, clockAheadMs, plugins, strokeMs: STROKE_MS });
    const admin = await openLink(t, nats.urls(), { name: CLUSTER, key: ClusterKey.open(hosts.keyFile) });
    const cluster = new FaultyCluster(t, nats, hosts, callers, links, admin, leaseMs);
    await Promise.all(NAMES.map((name) => hosts.start(name)));
    await hosts.stroke(NAMES);
    callers.start(hosts, NAMES);
    await callers.mint(hosts, NAMES);
    return cluster;
  }

  /** A stream that all hosts share. */
  stream(name: 'LEDGER' | 'SHARED' | 'QUORUM_1'): string {
    return `HF_${CLUSTER}_${name}`;
  }

  /** The newest stream that holds the log of a host; the first one while NATS does not say. */
  async logOf(host: string): Promise<string> {
    const streams = { link: this.#admin, cluster: CLUSTER, clock: systemClock, logger: silent };
    const newest = await newestIncarnation(streams, host).catch(() => 1);
    return namesOf(CLUSTER, host, newest).stream;
  }

  /** The server that leads a stream; the first one while there is no leader. */
  async leaderOf(stream: string): Promise<number> {
    try {
      const { cluster } = await (await this.#admin.manager()).streams.info(stream);
      return Number(cluster?.leader?.slice(1) ?? 0);
    } catch {
      return 0;
    }
  }

  /** While NATS does not do it, nothing is deleted. */
  async deleteStream(stream: string): Promise<void> {
    await this.#admin
      .manager()
      .then(({ streams }) => streams.delete(stream))
      .catch(() => {});
  }

  /** Has the newest message of a stream stored again, as a copy that comes after the window in which NATS would know it. */
  async repeat(stream: string): Promise<void> {
    const link = this.#admin;
    const manager = await link.manager();
    const { state } = await manager.streams.info(stream);
    const message = await manager.streams.getMessage(stream, { seq: state.last_seq });
    if (!message) return;
    const headers = message.header;
    for (const name of headers.keys()) if (name.startsWith('Nats-')) headers.delete(name);
    await link.jetstream().publish(message.subject, message.data, { headers });
  }

  linksOf(host: string): readonly NatsProxy[] {
    return this.#links.get(host) ?? [];
  }

  /** The host that a fault is to meet now. */
  hostOf(whom: Fault['whom']): string {
    const holder = this.hosts.journal().at(-1)?.host ?? NAMES[0];
    const [first = holder, second = holder] = NAMES.filter((name) => name !== holder);
    return { holder, first, second }[whom];
  }

  async endHost(host: string, signal: NodeJS.Signals): Promise<void> {
    if (!this.hosts.isUp(host)) return;
    this.hosts.of(host).child.kill('SIGCONT');
    await this.hosts.end(host, signal);
  }

  async startHost(host: string, args: readonly string[] = []): Promise<void> {
    if (!this.hosts.isUp(host)) await this.hosts.start(host, args);
  }

  /** Resolves when the newest stream of a host holds its whole log of some moment before. */
  async isMirrored(host: string): Promise<void> {
    const log = new SqliteReader(this.hosts.dataDir(host));
    const last = log.lastSeq();
    log.close();
    const streams = { link: this.#admin, cluster: CLUSTER, clock: systemClock, logger: silent };
    const isThere = async () => {
      const mirror = await openHostLog(streams, host).catch(() => undefined);
      mirror?.reader.close();
      return mirror !== undefined && mirror.end.seq >= last;
    };
    await until(`the stream of ${host} holds its log`, isThere, 100);
  }

  /** Somebody revokes the key that is called, at a host or, while that one cannot, at another one. */
  revoke(host: string): Promise<void> {
    return this.callers.revoke(this.hosts, [host, ...NAMES.filter((name) => name !== host)]);
  }

  /**
   * Waits until the pump makes strokes again and all hosts know the same of the keys; then clients get new keys.
   *
   * @returns what is wrong with what was done so far
   */
  async goesOn(): Promise<string[]> {
    const { hosts, callers, nats } = this;
    for (const name of NAMES) await this.startHost(name);
    try {
      // One that may have begun before the fault was healed, and one behind it.
      await hosts.stroke(NAMES);
      await hosts.stroke(NAMES);
      try {
        await callers.agree(hosts, NAMES);
        await callers.mint(hosts, NAMES);
      } catch (error) {
        throw new Error(`${error}\n${hosts.told()}`, { cause: error });
      }
    } catch (error) {
      const why = await explainStall(nats, hosts, NAMES, this.timeline());
      throw new Error(`${error}\n${why}`, { cause: error });
    }
    return this.#done();
  }

  #done(): string[] {
    return [
      ...journalViolations(this.hosts.journal(), this.leaseMs),
      ...this.callers.violations(NAMES.length),
    ];
  }

  /** Stops all hosts and holds their logs, their streams and the journal against each other. @returns what is wrong */
  async end(): Promise<string[]> {
    const found: string[] = [];
    await this.callers.stop();
    for (const name of NAMES) found.push(...(await this.#untoldViolations(name)));
    // Each has time to send what is left of its log, and to hand over.
    for (const name of NAMES) {
      const { code } = await this.#stopped(name);
      if (code !== 0) found.push(`${name} ended with ${code}: ${this.hosts.told()}`);
    }
    found.push(...this.#done());
    const logs = new Map(NAMES.map((name) => [name, new SqliteReader(this.hosts.dataDir(name))]));
    try {
      found.push(...storyViolations(logs, this.hosts.journal()));
      for (const [host, log] of logs) found.push(...(await this.#mirrorViolations(host, log)));
    } finally {
      for (const log of logs.values()) log.close();
    }
    for (const name of NAMES) found.push(...(await this.#replayViolations(name)));
    if (found.length <= MOST) return found;
    return [...found.slice(0, MOST), `and ${found.length - MOST} more`];
  }

  /** What the hosts recorded of the pump's lease, oldest first. */
  timeline(): string[] {
    const logs = new Map(NAMES.map((name) => [name, new SqliteReader(this.hosts.dataDir(name))]));
    try {
      return timelineOf(logs, (host) => AHEAD_MS[host] ?? 0);
    } finally {
      for (const log of logs.values()) log.close();
    }
  }

  /** All hosts are up: each that was taken over hears of it, whatever the servers have lost. */
  async #untoldViolations(host: string): Promise<string[]> {
    const log = new SqliteReader(this.hosts.dataDir(host));
    try {
      await until(`the hosts before know of the takeovers by ${host}`, () => untoldIn(log).length === 0, 200);
      return [];
    } catch (error) {
      return [`${error}: ${JSON.stringify(untoldIn(log))}`];
    } finally {
      log.close();
    }
  }

  async #stopped(host: string) {
    const { child, ended } = this.hosts.of(host);
    child.kill('SIGTERM');
    return ended;
  }

  /** After a clean stop the newest stream of a host is its log. */
  async #mirrorViolations(host: string, log: SqliteReader): Promise<string[]> {
    const streams = { link: this.#admin, cluster: CLUSTER, clock: systemClock, logger: silent };
    // Servers that have just come back may still elect their leaders.
    const open = () => openHostLog(streams, host).catch(() => undefined);
    const mirror = await read(`the stream of ${host} is read`, open, Boolean, 200);
    if (!mirror) return [`the stream of ${host} cannot be read`];
    try {
      const { seq, hash } = mirror.end;
      if (log.hashOf(seq) !== hash) return [`the stream of ${host} holds another record ${seq} than its log`];
      const last = log.lastSeq();
      // The plugin leaves before the runtime writes its last records.
      const own = log.record(last).actor;
      return last - seq > AFTER_LEAVING ? [`${host} ended at ${last} (${own}), its stream at ${seq}`] : [];
    } finally {
      mirror.reader.close();
    }
  }

  async #replayViolations(host: string): Promise<string[]> {
    const { hosts } = this;
    const argv = ['replay', 'verify', '--data-dir', hosts.dataDir(host), '--config', hosts.config(host)];
    const verified = spawnHoldfast(this.#t, argv, { cwd: hosts.dir, env: hosts.env(host) });
    const { code, out, err } = await verified.ended;
    return code === 0 ? [] : [`the log of ${host} does not replay (${code}): ${out.slice(-2_000)}${err}`];
  }
}

/** Long enough that faults meet it in the middle. */
const STROKE_MS = 100;
/** One broken rule breaks others behind it. */
const MOST = 10;
/** Records that the runtime writes at its stop when the cluster has been left. */
const AFTER_LEAVING = 10;
