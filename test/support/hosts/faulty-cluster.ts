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
import { read } from '../until.ts';
import type { Fault } from './faults.ts';
import { Hosts } from './hosts.ts';
import { journalViolations } from './journal-rules.ts';
import { storyViolations, timelineOf } from './story-rules.ts';

const NAMES = ['one', 'two', 'three'] as const;
const MINUTE = 60_000;
/** The hosts disagree about the time of day. */
const AHEAD_MS: Readonly<Record<string, number>> = { one: 0, two: 7 * MINUTE, three: -4 * MINUTE };
const CLUSTER = 'tests';

/** Three servers of NATS and three hosts, each host with a link of its own to each server, and what is wrong with them. */
export class FaultyCluster {
  readonly nats: NatsServers;
  readonly hosts: Hosts;
  readonly leaseMs: number;
  readonly #t: Scope;
  readonly #links: ReadonlyMap<string, readonly NatsProxy[]>;
  readonly #admin: NatsLink;

  private constructor(
    t: Scope,
    nats: NatsServers,
    hosts: Hosts,
    links: ReadonlyMap<string, readonly NatsProxy[]>,
    admin: NatsLink,
    leaseMs: number,
  ) {
    this.#t = t;
    this.nats = nats;
    this.hosts = hosts;
    this.leaseMs = leaseMs;
    this.#links = links;
    this.#admin = admin;
  }

  /** Starts all, and waits for the first stroke of the pump. */
  static async start(t: Scope, leaseMs: number): Promise<FaultyCluster> {
    const nats = await startNats(t, { servers: 3 });
    const links = new Map<string, readonly NatsProxy[]>();
    for (const name of NAMES)
      links.set(name, await Promise.all(nats.urls().map((_, server) => nats.proxyTo(server))));
    const servers = (host: string) => (links.get(host) ?? []).map(({ url }) => url).join(',');
    const hosts = new Hosts(t, { servers, leaseMs, clockAheadMs: (host) => AHEAD_MS[host] ?? 0 });
    const admin = await openLink(t, nats.urls(), { name: CLUSTER, key: ClusterKey.open(hosts.keyFile) });
    const cluster = new FaultyCluster(t, nats, hosts, links, admin, leaseMs);
    await Promise.all(NAMES.map((name) => hosts.start(name)));
    await hosts.stroke(NAMES);
    return cluster;
  }

  get ledger(): string {
    return `HF_${CLUSTER}_LEDGER`;
  }

  /** The newest stream that holds the log of a host. */
  async logOf(host: string): Promise<string> {
    const streams = { link: this.#admin, cluster: CLUSTER, clock: systemClock, logger: silent };
    return namesOf(CLUSTER, host, await newestIncarnation(streams, host)).stream;
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

  async deleteStream(stream: string): Promise<void> {
    await (await this.#admin.manager()).streams.delete(stream).catch(() => {});
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

  async startHost(host: string): Promise<void> {
    if (!this.hosts.isUp(host)) await this.hosts.start(host);
  }

  /** Waits until the pump makes strokes again. @returns what is wrong with what was done so far */
  async goesOn(): Promise<string[]> {
    for (const name of NAMES) await this.startHost(name);
    // One that may have begun before the fault was healed, and one behind it.
    await this.hosts.stroke(NAMES);
    await this.hosts.stroke(NAMES);
    return journalViolations(this.hosts.journal(), this.leaseMs);
  }

  /** Stops all hosts and holds their logs, their streams and the journal against each other. @returns what is wrong */
  async end(): Promise<string[]> {
    const found: string[] = [];
    // Each has time to send what is left of its log, and to hand over.
    for (const name of NAMES) {
      const { code } = await this.#stopped(name);
      if (code !== 0) found.push(`${name} ended with ${code}: ${this.hosts.told()}`);
    }
    found.push(...journalViolations(this.hosts.journal(), this.leaseMs));
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

  async #stopped(host: string) {
    const { child, ended } = this.hosts.of(host);
    child.kill('SIGTERM');
    return ended;
  }

  /** After a clean stop the newest stream of a host is its log. */
  async #mirrorViolations(host: string, log: SqliteReader): Promise<string[]> {
    const streams = { link: this.#admin, cluster: CLUSTER, clock: systemClock, logger: silent };
    const mirror = await read(`the stream of ${host} is read`, () => openHostLog(streams, host), Boolean);
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

/** One broken rule breaks others behind it. */
const MOST = 10;
/** Records that the runtime writes at its stop when the cluster has been left. */
const AFTER_LEAVING = 10;
