import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import test, { type ExecutionContext } from 'ava';
import { actsOf, LeaseHost, machineMs } from '../../../support/lease-hosts.ts';
import { type NatsServers, startNats } from '../../../support/nats.ts';
import { natsOfFile } from '../../../support/nats-of-file.ts';
import type { NatsProxy } from '../../../support/nats-proxy.ts';
import { tempDir } from '../../../support/temp.ts';
import { read } from '../../../support/until.ts';

const TTL = 2_000;
const HOUR = 3_600_000;

let names = 0;

interface Started {
  readonly host: LeaseHost;
  readonly links: readonly NatsProxy[];
}

/** Hosts of one cluster, each with a connection of its own and its wall clock an hour from the others. */
class Hosts {
  readonly #t: ExecutionContext;
  readonly #nats: NatsServers;
  readonly #name: string;
  readonly #journal: string;
  #started = 0;

  constructor(t: ExecutionContext, nats: NatsServers) {
    names += 1;
    this.#t = t;
    this.#nats = nats;
    this.#name = `c${names}`;
    this.#journal = join(tempDir(t), 'journal');
  }

  get stream(): string {
    return `HF_${this.#name}_LEDGER`;
  }

  async start(host: string): Promise<Started> {
    const links = await Promise.all(
      Array.from({ length: this.#nats.count }, (_, i) => this.#nats.proxyTo(i)),
    );
    this.#started += 1;
    const options = {
      ...{ host, servers: links.map(({ url }) => url), name: this.#name, journal: this.#journal },
      ...{ folder: `${host}-${this.#started}`, ttlMs: TTL, replicas: this.#nats.count },
      aheadMs: (this.#started - 2) * HOUR,
    };
    return { host: await LeaseHost.start(this.#t, options), links };
  }

  /** The first act of one of these hosts since a time. */
  async act(hosts: readonly LeaseHost[], since: number): Promise<{ at: number; host: LeaseHost }> {
    const find = () => {
      for (const { at, host: name } of actsOf(this.#journal)) {
        const host = hosts.find((one) => one.host === name);
        if (host && at > since) return { at, host };
      }
      return undefined;
    };
    const names = hosts.map(({ host }) => host).join(' or ');
    return (await read(`${names} acts`, find, Boolean)) as { at: number; host: LeaseHost };
  }

  /** No act of an older holder after one of a newer. */
  check(): void {
    const acts = actsOf(this.#journal);
    const late = acts.filter(({ number }, index) => number < (acts[index - 1]?.number ?? 0));
    this.#t.deepEqual(late, []);
    this.#t.true(acts.length > 0);
  }
}

interface Pair {
  readonly hosts: Hosts;
  readonly holder: Started;
  readonly other: Started;
}

/** A holder and a host that waits. On a busy machine they may change places before a fault: each test allows for it. */
async function pair(t: ExecutionContext, nats: NatsServers): Promise<Pair> {
  const hosts = new Hosts(t, nats);
  const [a, b] = [await hosts.start('a'), await hosts.start('b')];
  const { host } = await hosts.act([a.host, b.host], 0);
  return host === a.host ? { hosts, holder: a, other: b } : { hosts, holder: b, other: a };
}

const nats = natsOfFile(test);

const after = (from: number, to: number) => `${Math.round(to - from)} ms, lease ${TTL} ms`;

test.serial(
  '[C13] a holder that is killed is followed by another one, which leaves nothing to wait for when it stops',
  async (t) => {
    const { hosts, holder, other } = await pair(t, nats());
    const killed = machineMs();
    await holder.host.kill();
    t.log(`kill -9: held again after ${after(killed, (await hosts.act([other.host], killed)).at)}`);
    const again = await hosts.start(holder.host.host);
    const stopped = machineMs();
    await other.host.stop();
    t.log(`clean stop: held again after ${after(stopped, (await hosts.act([again.host], stopped)).at)}`);
    hosts.check();
  },
);

test.serial(
  '[C13] a holder that was stopped for longer than its lease does nothing more when it goes on',
  async (t) => {
    const { hosts, holder, other } = await pair(t, nats());
    const stopped = machineMs();
    holder.host.signal('SIGSTOP');
    t.log(`SIGSTOP: held again after ${after(stopped, (await hosts.act([other.host], stopped)).at)}`);
    holder.host.signal('SIGCONT');
    await holder.host.says(/^lost/, 0);
    await hosts.act([other.host], machineMs());
    hosts.check();
  },
);

for (const direction of ['both', 'up', 'down'] as const) {
  test.serial(
    `[C13] a holder that is cut off (${direction}) ends by itself before another one begins, and follows when it is back`,
    async (t) => {
      const { hosts, holder, other } = await pair(t, nats());
      const cut = machineMs();
      for (const link of holder.links) link.cut(direction);
      t.log(`cut ${direction}: held again after ${after(cut, (await hosts.act([other.host], cut)).at)}`);
      await holder.host.says(/^lost/, 0);
      for (const link of holder.links) link.heal();
      const healed = machineMs();
      await other.host.kill();
      await hosts.act([holder.host], healed);
      hosts.check();
    },
  );
}

test.serial(
  '[C13] a ledger that is deleted voids the leases; the next one counts on, and who held them is remembered',
  async (t) => {
    const { hosts, holder, other } = await pair(t, nats());
    const connection = await connect({ servers: nats().urls() });
    t.teardown(() => connection.close());
    const deleted = machineMs();
    t.true(await (await jetstreamManager(connection)).streams.delete(hosts.stream));
    const lost = await holder.host.says(/^lost/, deleted);
    const { at, host } = await hosts.act([holder.host, other.host], lost.at);
    t.log(`ledger deleted: held again after ${after(deleted, at)}`);
    t.regex(host.said.findLast(({ text }) => text.startsWith('gained'))?.text ?? '', / [ab]$/);
    hosts.check();
  },
);

test.serial(
  '[C13] of three servers, the one that leads the ledger is killed: in the end one host holds it, and never two',
  async (t) => {
    const three = await startNats(t, { servers: 3 });
    const { hosts, holder, other } = await pair(t, three);
    const both = [holder.host, other.host];
    const connection = await connect({ servers: three.urls() });
    t.teardown(() => connection.close());
    const { cluster } = await (await jetstreamManager(connection)).streams.info(hosts.stream);
    const leader = Number(cluster?.leader?.slice(1));
    const killed = machineMs();
    await three.kill(leader);
    // An election may take longer than this lease; then it is lost and gained again.
    await hosts.act(both, killed + 3 * TTL);
    const gained = both.flatMap(({ said }) => said).filter(({ text }) => text.startsWith('gained'));
    const first = gained.find(({ at }) => at > killed);
    t.log(`leader killed: ${first ? `held again after ${after(killed, first.at)}` : 'the lease was kept'}`);
    await three.restart(leader);
    const { host } = await hosts.act(both, machineMs());
    const again = machineMs();
    await host.kill();
    const taken = await hosts.act(
      both.filter((one) => one !== host),
      again,
    );
    t.log(`three servers, kill -9: held again after ${after(again, taken.at)}`);
    hosts.check();
  },
);
