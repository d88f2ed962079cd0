import { join } from 'node:path';
import type { Scope } from '../../test/support/scope.ts';
import { read } from '../../test/support/until.ts';
import type { Load, Loaded, Order } from '../gateway/load.ts';
import { Program } from '../gateway/program.ts';
import { KEY, session } from '../gateway/session.ts';
import { median, perSecond, type Result, withScope } from '../measure.ts';
import { BenchHost, type ClusterWish, pin } from './host.ts';

export interface CallsWish {
  readonly dir: string;
  readonly cluster: ClusterWish;
  /** The process of NATS. */
  readonly natsPid: number;
  /**
   * How often everything is started anew. One start differs from the next by more than a call of a cluster from one without, so only
   * several tell something.
   */
  readonly starts: number;
  readonly warmTurns: number;
  readonly rounds: number;
}

/** V8 makes machine code of the hot path in its first twenty thousand calls or so. */
const WARM = { clients: 16, ms: 1_200, calls: 3_000 };
const BUSY = { clients: 16, ms: 500 };
/** Well below what a processor can do, so that no call waits for another: eight clients make 400 calls a second. */
const PACED = { clients: 8, ms: 400, everyMs: 20 };
const ADDED_MS = 0.1;
const TIMES = 1.8;

const keyRequest = {
  key: KEY,
  key_alias: 'bench',
  object_permission: { mcp_servers: ['near0', 'near1'] },
  rpm_limit: 1_000_000,
  max_budget: 1_000_000,
};

/** A processor of the machine, with a load, an upstream and the route to it. */
interface Place {
  readonly processor: number;
  readonly route: string;
  readonly load: Program;
}

interface Target {
  readonly host: BenchHost;
  /** Headers of requests, by route. */
  readonly sessions: ReadonlyMap<string, Order['headers']>;
}

type Two<T> = readonly [T, T];

/** What one start told of the hosts of a cluster, or of those that are alone: medians of its rounds. */
interface Told {
  /** Calls a second of one host. */
  readonly one: number;
  /** Of two together. */
  readonly two: number;
  /** Of a call, milliseconds. */
  readonly p50: number;
  /** Of a call, all threads, milliseconds. */
  readonly cpuMs: number;
}

type Kind = 'clustered' | 'alone';
type Figures = Readonly<Record<Kind, Told>>;

/**
 * Two hosts of a cluster, and two that are alone, each the gateway of one key. The load shares the machine, so it has its place
 * on a processor like everything else.
 */
export async function callRows(wish: CallsWish): Promise<Result[]> {
  const figures: Figures[] = [];
  for (let start = 1; start <= wish.starts; start += 1)
    figures.push(await withScope((scope) => figuresOf(scope, wish, String(start))));
  return [timesOf(figures), ...addedBy(figures)];
}

async function figuresOf(scope: Scope, wish: CallsWish, run: string): Promise<Figures> {
  const places = [await place(scope, 0), await place(scope, 1)] as const;
  const upstreams = Object.fromEntries(places.map(({ route, url }) => [route, url]));
  const dir = join(wish.dir, 'calls', run);
  const start = async (name: string, cluster?: ClusterWish) =>
    BenchHost.start(scope, { name, dir, cluster, upstreams });
  const cluster = { ...wish.cluster, name: `${wish.cluster.name}-${run}` };
  const hosts = [await start('one', cluster), await start('two', cluster)] as const;
  const others = [await start('left'), await start('right')] as const;
  // Of the cluster's key both hosts know when it is made.
  for (const host of [hosts[0], ...others]) await host.control('/gateway/keys/mint', keyRequest);
  const clustered = [await target(hosts[0]), await target(hosts[1])] as const;
  const alone = [await target(others[0]), await target(others[1])] as const;
  const pinned = ([first, second]: Two<number>) => {
    for (const [one, two] of [hosts, others]) {
      one.pin(first);
      two.pin(second);
    }
  };

  pinned([0, 1]);
  for (let turn = 0; turn < wish.warmTurns; turn += 1)
    for (const pair of [clustered, alone]) await both(places, pair, WARM);
  const rates = await throughput(places, { clustered, alone }, wish);
  pinned([0, 0]);
  pin(wish.natsPid, [1]);
  const taken = await added(places[1], { clustered, alone }, wish.rounds);
  const told = (kind: Kind): Told => ({ ...rates(kind), ...taken(kind) });
  return { clustered: told('clustered'), alone: told('alone') };
}

async function place(scope: Scope, processor: number): Promise<Place & { readonly url: string }> {
  const begin = (name: string) => {
    const program = Program.start(name, processor);
    scope.teardown(() => program.stop());
    return program;
  };
  const upstream = begin('upstream');
  const { url } = await upstream.said<{ url: string }>();
  const load = begin('load');
  await load.said();
  return { processor, route: `near${processor}`, load, url };
}

async function target(host: BenchHost): Promise<Target> {
  const begun = async (route: string) => {
    // Another host knows of the key some milliseconds later.
    const find = () => session(host.mcpUrl(route));
    return [route, await read('a session', find, (found) => found['mcp-session-id'] !== '', 50)] as const;
  };
  return { host, sessions: new Map([await begun('near0'), await begun('near1')]) };
}

async function called(
  { load, route }: Place,
  { host, sessions }: Target,
  order: Pick<Order, 'clients' | 'ms' | 'calls' | 'everyMs'>,
): Promise<Load> {
  const done = await load.ask<Loaded>({
    ...{ ...order, tool: 'small', url: host.mcpUrl(route), prefix: `${route}-` },
    headers: sessions.get(route) ?? {},
  });
  if (done.failed > 0)
    throw new Error(`${host.name}: ${done.failed} of ${done.calls} calls failed, first with ${done.failure}`);
  return done;
}

/** Each host called from its own processor, both at once. @returns calls a second of both together */
async function both(
  places: Two<Place>,
  [one, two]: Two<Target>,
  order: Parameters<typeof called>[2],
): Promise<number> {
  const done = await Promise.all([called(places[0], one, order), called(places[1], two, order)]);
  return done[0].rate + done[1].rate;
}

type Pairs = Readonly<Record<Kind, Two<Target>>>;

/**
 * Everything that one host needs runs on its processor: its clients, its upstream, and NATS. Two hosts have the same on two
 * processors, and NATS is one there, too.
 */
async function throughput(places: Two<Place>, pairs: Pairs, { rounds, natsPid }: CallsWish) {
  const seen = { clustered: [] as Pick<Told, 'one' | 'two'>[], alone: [] as Pick<Told, 'one' | 'two'>[] };
  for (let round = 0; round < rounds; round += 1) {
    for (const kind of ['clustered', 'alone'] as const) {
      const [one, two] = pairs[kind];
      pin(natsPid, [0]);
      const first = await called(places[0], one, BUSY);
      pin(natsPid, [1]);
      const second = await called(places[1], two, BUSY);
      pin(natsPid, [0, 1]);
      seen[kind].push({ one: (first.rate + second.rate) / 2, two: await both(places, pairs[kind], BUSY) });
    }
  }
  return (kind: Kind) => ({ one: middle(seen[kind], 'one'), two: middle(seen[kind], 'two') });
}

/** The four take turns on the first processor, and are called from the second, most of whose time is free. */
async function added(from: Place, pairs: Pairs, rounds: number) {
  const seen = { clustered: [] as Pick<Told, 'p50' | 'cpuMs'>[], alone: [] as Pick<Told, 'p50' | 'cpuMs'>[] };
  for (let round = 0; round < rounds; round += 1) {
    for (const at of [0, 1] as const) {
      for (const kind of round % 2 ? (['alone', 'clustered'] as const) : (['clustered', 'alone'] as const)) {
        const target = pairs[kind][at];
        const before = target.host.cpuMs();
        const { p50, calls } = await called(from, target, PACED);
        seen[kind].push({ p50, cpuMs: (target.host.cpuMs() - before) / calls });
      }
    }
  }
  return (kind: Kind) => ({ p50: middle(seen[kind], 'p50'), cpuMs: middle(seen[kind], 'cpuMs') });
}

function timesOf(all: readonly Figures[]): Result {
  const rate = (kind: Kind, figure: 'one' | 'two') =>
    perSecond(
      middle(
        all.map((one) => one[kind]),
        figure,
      ),
    );
  const times = all.map(({ clustered: { one, two } }) => two / one);
  const ratio = median(times);
  return {
    what: `calls of two hosts with clients, upstreams and NATS on two processors, ${BUSY.clients} clients a host, of ${all.length} starts`,
    ours: rate('clustered', 'two'),
    baseline: `${rate('clustered', 'one')} one with the same on one (${range(times)} by start); without a cluster ${rate('alone', 'two')} and ${rate('alone', 'one')}`,
    ...{ ratio, target: `≥ ${TIMES}`, met: ratio >= TIMES },
  };
}

function addedBy(all: readonly Figures[]): Result[] {
  const of = (kind: Kind, figure: 'p50' | 'cpuMs') =>
    middle(
      all.map((one) => one[kind]),
      figure,
    );
  const more = all.map(({ clustered, alone }) => clustered.p50 - alone.p50);
  const addedMs = median(more);
  return [
    {
      what: `a call at a host, ${PACED.clients} clients, each every ${PACED.everyMs} ms, p50, of ${all.length} starts`,
      ours: `${of('clustered', 'p50').toFixed(2)} ms`,
      baseline: `${of('alone', 'p50').toFixed(2)} ms without a cluster; ${addedMs.toFixed(2)} ms added (${range(more)} by start)`,
      ratio: of('clustered', 'p50') / of('alone', 'p50'),
      target: `< ${ADDED_MS} ms added`,
      met: addedMs < ADDED_MS,
    },
    {
      what: 'the same: processor a call, all threads',
      ours: `${of('clustered', 'cpuMs').toFixed(3)} ms`,
      baseline: `${of('alone', 'cpuMs').toFixed(3)} ms without a cluster`,
      ratio: of('clustered', 'cpuMs') / of('alone', 'cpuMs'),
    },
  ];
}

function middle<K extends string>(all: readonly Readonly<Record<K, number>>[], figure: K): number {
  return median(all.map((one) => one[figure]));
}

function range(values: readonly number[]): string {
  return `${Math.min(...values).toFixed(2)} to ${Math.max(...values).toFixed(2)}`;
}
