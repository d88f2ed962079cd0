import { z } from 'zod';
import {
  type Answers,
  type ArrivedMessage,
  type Cluster,
  ClusterToken,
  type HostMessage,
  type Lease,
  type Singleton,
} from '../../src/core/contracts/cluster.ts';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import { definePlugin, type PluginEntry, type Services } from '../../src/core/host/plugin/definition.ts';
import { createRuntime, type Runtime } from '../../src/core/host/runtime/runtime.ts';
import type { Inheritance } from '../../src/core/kernel/actors/adoption.ts';
import { recover } from '../../src/core/kernel/actors/recover.ts';
import type { Clock } from '../../src/core/kernel/clock.ts';
import { isCoded } from '../../src/core/kernel/errors/holdfast-error.ts';
import { parseActorRef } from '../../src/core/kernel/ids.ts';
import type { Json } from '../../src/core/kernel/json.ts';
import { SqliteReader } from '../../src/core/kernel/log/sqlite-reader.ts';
import { ClusterError } from '../../src/plugins/cluster/errors.ts';
import { SharedActors } from '../../src/plugins/cluster/messages/shared-actors.ts';
import type { Scope } from './scope.ts';
import { tempDir } from './temp.ts';

/** A lease that a test can let run out. */
interface TestLease extends Lease {
  over: boolean;
  deadline: () => number;
}

/**
 * Several hosts in one process, joined by memory instead of a network: messages to every host have one order, a singleton has
 * one holder at a time, and who takes one over goes on from the log of the one before.
 */
export class MemoryCluster {
  readonly members = new Map<string, Member>();
  readonly holders = new Map<string, { readonly member: Member; readonly lease: TestLease }>();
  /** Who held a singleton last. */
  readonly #last = new Map<string, Member>();
  readonly shared: Omit<ArrivedMessage, 'singleton'>[] = [];
  /** What happened, in order; tests add to it. */
  readonly story: string[] = [];
  /** So many of them have made room for newer ones. */
  gone = 0;
  #tokens = 0;
  /** Hosts get what nobody holds as soon as they compete, unless a test deals it out itself. */
  deals = true;

  join(name: string, dataDir: string): Member {
    const member = new Member(this, name, dataDir);
    this.members.set(name, member);
    return member;
  }

  /** Lets a host hold a singleton: it ends at the holder first, if there is one. @param patienceMs as `Singleton.end` */
  async move(singleton: string, to: string, patienceMs = 0): Promise<void> {
    const holder = this.holders.get(singleton);
    if (holder) await holder.member.singleton(singleton).end(`moved to ${to}`, patienceMs);
    await this.give(singleton, to);
  }

  /** The same while the holder does not know yet that its lease is over. */
  async give(singleton: string, to: string): Promise<void> {
    const [member, last] = [this.#member(to), this.#last.get(singleton)];
    const before = this.holders.get(singleton);
    if (before) before.lease.over = true;
    this.holders.delete(singleton);
    const { actorTypes, begin } = bound(member.singleton(singleton));
    const inheritance = last && last !== member ? await last.leaves(actorTypes) : undefined;
    this.#tokens += 1;
    const lease: TestLease = {
      ...{ singleton, token: `1:${this.#tokens}`, over: false },
      deadline: () => (lease.over ? 0 : Number.POSITIVE_INFINITY),
    };
    this.holders.set(singleton, { member, lease });
    try {
      await begin(lease, inheritance);
      this.#last.set(singleton, member);
    } catch (error) {
      this.holders.delete(singleton);
      throw error;
    }
  }

  lease(singleton: string): TestLease | undefined {
    return this.holders.get(singleton)?.lease;
  }

  /** Every host that is connected gets what it has not had yet, in order. */
  deliverAll(): void {
    for (const member of this.members.values()) void member.takeShared();
  }

  #member(name: string): Member {
    const member = this.members.get(name);
    if (!member) throw new Error(`there is no host ${name}`);
    return member;
  }
}

/** One host of it. */
export class Member implements Cluster {
  readonly name = 'test';
  readonly host: string;
  readonly #cluster: MemoryCluster;
  readonly #dataDir: string;
  readonly #singletons = new Map<string, Singleton>();
  readonly #answers = new Map<string, (body: Json, from: string) => unknown>();
  readonly #figures = new Map<string, () => Json>();
  #deliver: ((message: ArrivedMessage) => Promise<void>) | undefined;
  #applied: number;
  #isTaking = false;
  /** Nothing goes out or comes in. */
  isCut = false;
  /** How long it has heard nothing, as it says of itself, milliseconds. */
  silentMs = 0;
  /** It was cut off, and has not read what it missed. */
  isBehind = false;
  /** Messages to every host that counted as missed here. */
  readonly notUnderstood: string[] = [];
  /** Records that wait for the stream, while it takes none. */
  #unmirrored: (() => void)[] | undefined;
  runtime: Runtime | undefined;
  services: Services | undefined;

  constructor(cluster: MemoryCluster, host: string, dataDir: string) {
    this.#cluster = cluster;
    this.host = host;
    this.#dataDir = dataDir;
    this.#applied = cluster.gone;
  }

  key(purpose: string): Buffer {
    return Buffer.alloc(32, purpose);
  }

  standing() {
    const { isCut, isBehind, silentMs } = this;
    return { hosts: this.#cluster.members.size, silentMs, isIsolated: isCut || isBehind, isBehind };
  }

  onArrived(deliver: (message: ArrivedMessage) => Promise<void>): void {
    this.#deliver = deliver;
    void this.takeShared();
  }

  compete(singletons: readonly Singleton[]): void {
    for (const singleton of singletons) {
      this.#singletons.set(singleton.name, singleton);
      if (!this.#cluster.deals || this.#cluster.holders.has(singleton.name)) continue;
      void this.#cluster.give(singleton.name, this.host).catch(() => {});
    }
  }

  singleton(name: string): Singleton {
    const singleton = this.#singletons.get(name);
    if (!singleton) throw new Error(`${this.host} does not compete for ${name}`);
    return singleton;
  }

  get competesFor(): readonly string[] {
    return [...this.#singletons.keys()];
  }

  holderOf(singleton: string): string | undefined {
    return this.#cluster.holders.get(singleton)?.member.host;
  }

  async toEveryHost(message: HostMessage): Promise<void> {
    if (this.isCut) {
      throw new ClusterError('HF_CLUSTER_ISOLATED', { id: message.topic, ms: 0, outcome: 'it is cut off' });
    }
    const { shared } = this.#cluster;
    shared.push({ ...clone(message), from: this.host, order: shared.length + 1, sentAt: shared.length + 1 });
    await Promise.resolve();
    this.#cluster.deliverAll();
  }

  /** A message that was delivered comes again. @returns when this host has taken it */
  async hear(message: ArrivedMessage): Promise<void> {
    await this.#deliver?.(clone(message));
  }

  /** How many of the messages to every host this one has taken. */
  get taken(): number {
    return this.#applied;
  }

  /** What was sent while it was away, or was not there, has made room for newer messages: it hears of the others what they know. */
  async missed(): Promise<void> {
    this.isCut = false;
    this.#cluster.gone = this.#cluster.shared.length;
    this.#applied = this.#cluster.gone;
    const own = this.#sharedActors(async () => {});
    for (const other of this.#cluster.members.values()) {
      if (other === this) continue;
      const shared = other.#sharedActors(async (ref, state) => {
        const isUnderstood = await own.take({ from: other.host, version: '1.0.0', ref, state: clone(state) });
        if (!isUnderstood) this.notUnderstood.push(ref);
      });
      await shared.send(() => false);
    }
  }

  #sharedActors(send: (ref: string, state: Json) => Promise<void>): SharedActors {
    const { services, host } = this;
    if (!services) throw new Error(`${this.host} does not run`);
    return new SharedActors({ services, host, send });
  }

  /** The next message waits until one is taken. */
  async takeShared(): Promise<void> {
    const deliver = this.#deliver;
    if (!deliver || this.#isTaking) return;
    this.#isTaking = true;
    for (let next = this.#next(); next; next = this.#next()) {
      try {
        await deliver(clone(next));
      } catch (error) {
        if (!isCoded(error, 'HF_PLUGIN_MESSAGE')) throw error;
        this.notUnderstood.push(error.what);
      }
      this.#applied += 1;
    }
    this.#isTaking = false;
  }

  #next(): Omit<ArrivedMessage, 'singleton'> | undefined {
    return this.isCut ? undefined : this.#cluster.shared[this.#applied];
  }

  async toHolder(singleton: string, message: HostMessage): Promise<void> {
    for (let tries = 0; tries < 500; tries += 1) {
      const holder = this.#cluster.holders.get(singleton)?.member;
      try {
        if (holder?.isCut === false && !this.isCut) {
          await holder.#deliver?.({ ...clone(message), from: this.host, singleton });
          return;
        }
      } catch (error) {
        if (!isCoded(error, 'HF_PLUGIN_ELSEWHERE') && !isCoded(error, 'HF_ACTOR_ELSEWHERE')) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    throw new Error('nobody took it');
  }

  mirrored(_seq: number): Promise<void> {
    const waiting = this.#unmirrored;
    return waiting ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve();
  }

  /** The stream takes nothing until the returned function is called. */
  holdMirror(): () => void {
    const waiting: (() => void)[] = [];
    this.#unmirrored = waiting;
    return () => {
      this.#unmirrored = undefined;
      for (const resolve of waiting) resolve();
    };
  }

  async ask(question: string, body: Json): Promise<Answers> {
    const others = [...this.#cluster.members.values()].filter((member) => member !== this);
    const isReached = (member: Member) => !member.isCut && !this.isCut;
    const reached = others.filter(isReached);
    const answers = await Promise.all(
      reached.map(async (member) => {
        const answer = (await member.#answers.get(question)?.(body, this.host)) as Json | undefined;
        return answer === undefined ? [] : [{ host: member.host, answer }];
      }),
    );
    return {
      answers: answers.flat(),
      unanswered: others.filter((member) => !isReached(member)).map(({ host }) => host),
    };
  }

  onAsked(question: string, answer: (body: Json, from: string) => unknown): void {
    this.#answers.set(question, answer);
  }

  announce(name: string, figures: () => Json): void {
    this.#figures.set(name, figures);
  }

  announced(name: string): ReadonlyMap<string, Json> {
    return new Map(
      [...this.#cluster.members.values()].flatMap((member) => {
        const figures = member.#figures.get(name);
        return figures ? [[member.host, figures()] as const] : [];
      }),
    );
  }

  /** What a successor goes on from: this host's log as it is on the disk. */
  async leaves(actorTypes: readonly string[]): Promise<Inheritance> {
    const log = this.runtime?.services.log;
    if (log && log.status().state === 'open') await log.whenDurable(log.lastSeq());
    const reader = new SqliteReader(this.#dataDir);
    try {
      const seq = reader.lastSeq();
      const states = [...recover(reader).states.values()].filter(({ ref }) =>
        actorTypes.includes(parseActorRef(ref).type),
      );
      return { host: this.host, incarnation: '1', seq, hash: reader.hashOf(seq) ?? '', states };
    } finally {
      reader.close();
    }
  }

  /** The plugin stops: others may have what it held. */
  leave(): void {
    for (const [name, { member }] of this.#cluster.holders) {
      if (member !== this) continue;
      this.#cluster.holders.delete(name);
      this.#cluster.story.push(`${this.host} released ${name}`);
    }
    this.#cluster.members.delete(this.host);
  }
}

function bound(singleton: Singleton) {
  return {
    actorTypes: singleton.actorTypes,
    begin: (lease: Lease, inheritance?: Inheritance) => singleton.begin(lease, inheritance),
  };
}

function clone<T>(message: T): T {
  return JSON.parse(JSON.stringify(message)) as T;
}

/** The plugin by which a host belongs to the cluster. */
export function joining(member: Member): PluginEntry {
  const plugin = definePlugin({
    name: 'cluster',
    options: z.strictObject({}),
    provides: [ClusterToken],
    fingerprintKey: () => member.key('fingerprints'),
    start(services): Cluster {
      member.services = services;
      return member;
    },
    register(context) {
      context.provide(ClusterToken, (started) => started);
      context.onStop(() => member.leave());
    },
  });
  return plugin();
}

/** A host that runs. */
export interface TestHost {
  readonly name: string;
  readonly member: Member;
  readonly runtime: Runtime;
  readonly dataDir: string;
}

/**
 * Starts a host of a cluster.
 *
 * @param plugins beside the one that joins it
 */
export async function startHost(
  t: Scope,
  cluster: MemoryCluster,
  name: string,
  plugins: readonly PluginEntry[],
  { dataDir = tempDir(t), clock, patienceMs }: { dataDir?: string; clock?: Clock; patienceMs?: number } = {},
): Promise<TestHost> {
  const member = cluster.join(name, dataDir);
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins: [...plugins, joining(member)] }).plugins,
    dataDir,
    logger: createLogger({ level: 'silent' }),
    ...(clock && { clock }),
    ...(patienceMs !== undefined && { patienceMs }),
  });
  t.teardown(() => runtime.stop('test over'));
  member.runtime = runtime;
  await runtime.start();
  return { name, member, runtime, dataDir };
}
