import { join } from 'node:path';
import type { Scope } from '../../test/support/scope.ts';
import { KEY } from '../gateway/session.ts';
import { median, perSecond, type Result, withScope } from '../measure.ts';
import { addedRows, pairedRounds, type RoundPair } from './added.ts';
import {
  called,
  type Kind,
  type Pairs,
  type Place,
  place,
  type Target,
  type Two,
  target,
} from './callers.ts';
import { BenchHost, type ClusterWish, pin } from './host.ts';

export interface CallsWish {
  readonly dir: string;
  readonly cluster: ClusterWish;
  /** The process of NATS. */
  readonly natsPid: number;
  /** How often everything is started anew: one start differs from the next. */
  readonly starts: number;
  readonly warmTurns: number;
  /** Of the throughput. */
  readonly rounds: number;
  /** Of single calls, of each host. */
  readonly pairedRounds: number;
}

/** V8 makes machine code of the hot path in its first twenty thousand calls or so. */
const WARM = { clients: 16, ms: 1_200, calls: 3_000 };
const BUSY = { clients: 16, ms: 500 };
const TIMES = 1.8;

const keyRequest = {
  key: KEY,
  key_alias: 'bench',
  object_permission: { mcp_servers: ['near0', 'near1'] },
  rpm_limit: 1_000_000,
  max_budget: 1_000_000,
};

/** Calls a second, medians of the rounds of one start. */
interface Rates {
  /** Of one host. */
  readonly one: number;
  /** Of two together. */
  readonly two: number;
}

/** What one start told. */
interface Start {
  readonly rates: Readonly<Record<Kind, Rates>>;
  readonly pairs: readonly RoundPair[];
}

/** Two hosts of a cluster, and two that are alone, all there at the same time, each the gateway of one key. */
export async function callRows(wish: CallsWish): Promise<Result[]> {
  const starts: Start[] = [];
  for (let start = 1; start <= wish.starts; start += 1)
    starts.push(await withScope((scope) => measured(scope, wish, String(start))));
  return [timesOf(starts.map(({ rates }) => rates)), ...addedRows(starts.map(({ pairs }) => pairs))];
}

async function measured(scope: Scope, wish: CallsWish, run: string): Promise<Start> {
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
  const routes = places.map(({ route }) => route);
  const targets = async ([one, two]: Two<BenchHost>) =>
    [await target(one, routes), await target(two, routes)] as const;
  const pairs = { clustered: await targets(hosts), alone: await targets(others) };
  const pinned = ([first, second]: Two<number>) => {
    for (const [one, two] of [hosts, others]) {
      one.pin(first);
      two.pin(second);
    }
  };

  pinned([0, 1]);
  for (let turn = 0; turn < wish.warmTurns; turn += 1)
    for (const kind of ['clustered', 'alone'] as const) await both(places, pairs[kind], WARM);
  const rates = await throughput(places, pairs, wish);
  pinned([0, 0]);
  pin(wish.natsPid, [1]);
  return { rates, pairs: await pairedRounds(places[1], pairs, wish.pairedRounds) };
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

/**
 * Everything that one host needs runs on its processor: its clients, its upstream, and NATS. Two hosts have the same on two
 * processors, and NATS is one there, too.
 */
async function throughput(
  places: Two<Place>,
  pairs: Pairs,
  { rounds, natsPid }: CallsWish,
): Promise<Record<Kind, Rates>> {
  const seen: Record<Kind, Rates[]> = { clustered: [], alone: [] };
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
  return { clustered: middle(seen.clustered), alone: middle(seen.alone) };
}

function timesOf(starts: readonly Readonly<Record<Kind, Rates>>[]): Result {
  const clustered = middle(starts.map((start) => start.clustered));
  const alone = middle(starts.map((start) => start.alone));
  const times = starts.map(({ clustered: { one, two } }) => two / one);
  const ratio = median(times);
  const [least, most] = [Math.min(...times), Math.max(...times)];
  return {
    what: `calls of two hosts with clients, upstreams and NATS on two processors, ${BUSY.clients} clients a host, of ${starts.length} starts`,
    ours: perSecond(clustered.two),
    baseline: `${perSecond(clustered.one)} one with the same on one (${least.toFixed(2)} to ${most.toFixed(2)} by start); without a cluster ${perSecond(alone.two)} and ${perSecond(alone.one)}`,
    ...{ ratio, target: `≥ ${TIMES}`, met: ratio >= TIMES },
  };
}

function middle(all: readonly Rates[]): Rates {
  return { one: median(all.map(({ one }) => one)), two: median(all.map(({ two }) => two)) };
}
