import { cpSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { clusterName, type HostWish, type MessageHost, openHost } from '../../../support/message-hosts.ts';
import { startNats } from '../../../support/nats.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';
import type { NatsProxy } from '../../../support/nats-proxy.ts';
import type { Scope } from '../../../support/scope.ts';
import { until } from '../../../support/until.ts';

const ids = ({ messages }: MessageHost) => messages.map(({ correlation }) => correlation);
const orders = ({ messages }: MessageHost) => messages.map(({ order }) => order ?? 0);
const isRising = (numbers: readonly number[]) =>
  numbers.every((n, i) => i === 0 || n > (numbers[i - 1] ?? 0));
const quantile = (values: readonly number[], part: number) =>
  [...values].sort((x, y) => x - y)[Math.min(values.length - 1, Math.floor(values.length * part))] ?? 0;

/** Messages of one host, one after the other, and how long each takes. */
class Sender {
  readonly stored: string[] = [];
  readonly calledAt = new Map<string, number>();
  readonly deliveredAt = new Map<string, number>();
  readonly refused: string[] = [];
  readonly #host: MessageHost;
  readonly #prefix: string;
  #isStopped = false;
  #done: Promise<void> = Promise.resolve();
  #count = 0;

  /** @param prefix of the messages' names */
  constructor(host: MessageHost, prefix = 'm') {
    this.#host = host;
    this.#prefix = prefix;
  }

  start(everyMs: number): void {
    const run = async () => {
      while (!this.#isStopped) {
        const id = `${this.#prefix}${this.#count++}`;
        this.calledAt.set(id, performance.now());
        try {
          await this.#host.send(id);
          this.deliveredAt.set(id, performance.now());
          this.stored.push(id);
        } catch {
          this.refused.push(id);
        }
        await delay(everyMs);
      }
    };
    this.#done = run();
  }

  get count(): number {
    return this.stored.length;
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#done;
  }

  /** Milliseconds from the call, and from the delivery at the sender, to the delivery at another host. */
  delays(to: MessageHost): { fromCall: number[]; fromStored: number[] } {
    const found = (since: ReadonlyMap<string, number>) =>
      this.stored.map((id) =>
        Math.max(0, (to.at.get(id) ?? Number.POSITIVE_INFINITY) - (since.get(id) ?? 0)),
      );
    return { fromCall: found(this.calledAt), fromStored: found(this.deliveredAt) };
  }
}

const nats = natsOfFile(test, { servers: 3 });

interface Rig {
  readonly name: string;
  readonly hosts: readonly [MessageHost, MessageHost, MessageHost];
  readonly proxies: readonly NatsProxy[][];
}

/**
 * Three hosts at the three servers, each with connections of its own to all of them.
 *
 * @param wish what else the hosts are to be
 */
async function rig(t: Scope, wish: Partial<HostWish> = {}): Promise<Rig> {
  const name = clusterName();
  const proxies = await Promise.all(
    [0, 1, 2].map((i) => Promise.all([0, 1, 2].map((server) => nats().proxyTo((server + i) % 3)))),
  );
  const open = (host: string, i: number) =>
    openHost(t, proxies[i]?.map(({ url }) => url) ?? [], host, {
      ...{ name, replicas: 3, withinMs: 60_000 },
      ...wish,
    });
  const hosts = (await Promise.all(['a', 'b', 'c'].map(open))) as [MessageHost, MessageHost, MessageHost];
  return { name, hosts, proxies };
}

const summary = (values: readonly number[]) =>
  `p50 ${quantile(values, 0.5).toFixed(1)}, p99 ${quantile(values, 0.99).toFixed(1)}, max ${Math.max(...values).toFixed(0)} ms`;

async function settle(sender: Sender, hosts: readonly MessageHost[]): Promise<void> {
  await sender.stop();
  await until('all hosts have all', () =>
    hosts.every((host) => sender.stored.every((id) => host.at.has(id))),
  );
}

function isOneStory(
  t: { deepEqual(a: unknown, b: unknown): unknown; true(a: boolean): unknown },
  hosts: readonly MessageHost[],
): void {
  const [first, ...others] = hosts;
  for (const other of others) t.deepEqual(ids(other), ids(first as MessageHost));
  for (const host of hosts) t.true(isRising(orders(host)));
}

test.serial(
  '[C13] with three servers a message of one host reaches every other without a poll, also when servers are lost',
  async (t) => {
    t.timeout(600_000);
    // Nobody looks by itself: what arrives was announced.
    const { name, hosts } = await rig(t, { pollMs: 3_600_000 });
    const [a, b, c] = hosts;
    const quiet = new Sender(a, 'quiet');
    quiet.start(5);
    await until('many are sent', () => quiet.count >= 300);
    await settle(quiet, hosts);
    const idle = [b, c].flatMap((host) => quiet.delays(host).fromCall);
    t.log(`three servers, from the call: ${summary(idle)}`);

    const sender = new Sender(a);
    sender.start(10);
    for (const stream of ['SHARED', 'QUORUM_1']) {
      const before = sender.count;
      const info = await (await b.link.manager()).streams.info(`HF_${name}_${stream}`);
      const leader = Number(info.cluster?.leader?.slice(1));
      await nats().kill(leader);
      await until('messages pass again', () => sender.count >= before + 100);
      await nats().restart(leader);
      await until('messages pass', () => sender.count >= before + 200);
    }
    await settle(sender, hosts);
    t.deepEqual(sender.refused, []);
    isOneStory(t, hosts);
    const { fromCall, fromStored } = {
      fromCall: [b, c].flatMap((host) => sender.delays(host).fromCall),
      fromStored: [b, c].flatMap((host) => sender.delays(host).fromStored),
    };
    t.log(`leaders killed, from the call: ${summary(fromCall)}; once stored: ${summary(fromStored)}`);
  },
);

test.serial(
  '[C13] a host that was cut off, in one direction or both, has every message afterwards, in the same order',
  async (t) => {
    const { hosts, proxies } = await rig(t);
    const [a, , c] = hosts;
    const sender = new Sender(a);
    sender.start(20);
    for (const cut of [
      (proxy: NatsProxy) => proxy.cut('both'),
      (proxy: NatsProxy) => proxy.cut('down'),
      (proxy: NatsProxy) => proxy.cut('up'),
    ]) {
      for (const proxy of proxies[2] ?? []) cut(proxy);
      await until('c is isolated', () => c.beats.standing().isIsolated);
      const before = sender.count;
      await until('others go on', () => sender.count >= before + 20);
      t.false(a.beats.standing().isIsolated);
      for (const proxy of proxies[2] ?? []) proxy.heal();
      await until('c is back', () => !c.beats.standing().isIsolated);
    }
    const before = sender.count;
    for (const proxy of proxies.flat()) proxy.drop();
    await until('messages pass again', () => sender.count >= before + 20);
    await settle(sender, hosts);
    t.deepEqual(sender.refused, []);
    isOneStory(t, hosts);
  },
);

test.serial('[C13] an acknowledgement that is lost makes no second message', async (t) => {
  const { hosts, proxies } = await rig(t);
  const [a, b] = hosts;
  const sender = new Sender(a);
  sender.start(5);
  for (let round = 0; round < 3; round += 1) {
    await until('messages pass', () => sender.count >= 40 * (round + 1));
    for (const proxy of proxies[0] ?? []) proxy.cut('down');
    await delay(300); // shorter than what makes it a lost connection
    for (const proxy of proxies[0] ?? []) proxy.heal();
  }
  await settle(sender, hosts);
  t.is(new Set(ids(b)).size, ids(b).length);
  t.deepEqual(sender.refused, []);
  isOneStory(t, hosts);
});

test.serial(
  '[C13] a server that was set back to an older state is noticed, and later messages are above all orders seen',
  async (t) => {
    const single = await startNats(t);
    const name = clusterName();
    const open = (host: string) => openHost(t, single.url(), host, { name, withinMs: 60_000 });
    const [a, b] = [await open('a'), await open('b')];
    const all = async (prefix: string, count: number) => {
      for (let i = 0; i < count; i += 1) await a.send(`${prefix}${i}`);
      await until('b has them', () => b.at.has(`${prefix}${count - 1}`));
    };
    await all('kept', 5);
    const store = single.storeOf(0);
    await single.kill(0);
    cpSync(store, `${store}.old`, { recursive: true });
    await single.restart(0);
    await all('lost', 10);
    await single.kill(0);
    rmSync(store, { recursive: true });
    cpSync(`${store}.old`, store, { recursive: true });
    await single.restart(0);
    await until('both have noticed', () => a.broken.length > 0 && b.broken.length > 0);
    await all('new', 20); // more than were lost
    for (const host of [a, b]) {
      t.deepEqual(host.broken, ['rewound 6 to 15']);
      t.true(isRising(orders(host)));
      t.deepEqual(ids(host).filter((id) => id.startsWith('kept')).length, 5);
    }
    t.deepEqual(ids(b), ids(a));
    const c = await open('c');
    await until('c has them', () => c.at.has('new19'));
    t.deepEqual(orders(c).slice(-20), orders(a).slice(-20));
  },
);
