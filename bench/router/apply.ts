import { execFileSync } from 'node:child_process';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { type Namespace, namespace } from '../../test/support/netns.ts';
import { RedisServer } from '../../test/support/redis.ts';
import type { Scope } from '../../test/support/scope.ts';
import { median, type Result, withScope } from '../measure.ts';
import { BareRedis } from './bare-redis.ts';
import { type Config, type Rig, startRig } from './rig.ts';

const LEGS = 200;
const ROUNDS = 7;
const MIB = 2 ** 20;

const leg = (index: number) => `eth1.${index + 1}`;
const ms = (value: number) => `${value.toFixed(1)} ms`;

/** Legs whose every address changes from round to round. */
function largeConfig(round: number): Config {
  const legs = Array.from({ length: LEGS }, (_, index) => [
    leg(index),
    {
      intf: 'eth1',
      vid: index + 1,
      ipv4: `10.${round % 250}.${index}.1/24`,
      ipv6: [`fd5e:21aa:${(round % 250).toString(16)}:${index.toString(16)}::1/64`],
      meta: { type: 'lan', name: `leg ${index}` },
    },
  ]);
  return { interface: { phy: { eth1: {} }, vlan: Object.fromEntries(legs) } };
}

/** How long it takes, milliseconds; the first time does not count. */
async function times(work: (round: number) => Promise<unknown>): Promise<number> {
  const took: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const started = performance.now();
    await work(round);
    if (round > 0) took.push(performance.now() - started);
  }
  return median(took);
}

async function save({ set }: Rig, config: Config): Promise<void> {
  const { status, body } = await set({ ...config, ignoreNcid: true });
  if (status !== 200) throw new Error(`a save was answered ${status}: ${JSON.stringify(body)}`);
}

/** A save that changes all of 200 legs, from the post to its answer. */
export async function applyLegs(): Promise<Result[]> {
  return withScope(async (scope) => {
    const redis = await RedisServer.start(scope);
    const bare = new BareRedis(redis.client(scope, 3));
    const straight = await times(async (round) => {
      const { ncid } = await bare.active();
      await bare.set({ ...largeConfig(round), ncid });
    });
    const rig = await startRig(scope, { redisUrl: redis.url });
    const memory = await times((round) => save(rig, largeConfig(round)));
    const line: Result = {
      what: `save that changes ${LEGS} legs, memory kernel`,
      ours: ms(memory),
      baseline: `${ms(straight)} straight to Redis`,
      ratio: memory / straight,
    };
    return [line, ...(await applyForReal(scope, redis))];
  });
}

/** The same in a network namespace; empty where this machine lets nobody make one. */
async function applyForReal(scope: Scope, redis: RedisServer): Promise<Result[]> {
  const space = namespace(scope);
  if (!space) return [];
  const devices = ['eth1', ...Array.from({ length: LEGS }, (_, index) => leg(index))];
  batch(
    space,
    devices.map((name, index) => `link add ${name} type veth peer name peer${index}`),
  );
  const rig = await startRig(scope, {
    redisUrl: redis.url,
    kernel: 'linux',
    namespace: space.name,
    generatedDir: 'files',
  });
  const linux = await times((round) => save(rig, largeConfig(round)));
  const bare = await times(async (round) => {
    const { vlan } = largeConfig(round + 100).interface;
    batch(
      space,
      Object.entries<Config>(vlan).flatMap(([name, { ipv4, ipv6 }]) => [
        `address flush dev ${name} scope global`,
        `address add ${ipv4} dev ${name}`,
        `address add ${ipv6[0]} dev ${name}`,
      ]),
    );
  });
  const baseline = `${ms(bare)} one bare ip -batch`;
  const what = `save that changes ${LEGS} legs, linux kernel`;
  return [{ what, ours: ms(linux), baseline, ratio: linux / bare, target: '≤ 400 ms', met: linux <= 400 }];
}

function batch({ name }: Namespace, lines: readonly string[]): void {
  execFileSync('ip', ['-n', name, '-batch', '-'], { input: `${lines.join('\n')}\n` });
}

/** The largest config that is taken, how long it holds up everybody else, and one that is a byte larger. */
export async function largestConfig(): Promise<Result[]> {
  return withScope(async (scope) => {
    const { set, runtime } = await startRig(scope);
    const held: number[] = [];
    const parsed: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const body = sized(MIB, round);
      const delay = monitorEventLoopDelay({ resolution: 1 });
      delay.enable();
      const { status } = await set(body);
      delay.disable();
      if (status !== 200) throw new Error(`1 MiB was answered ${status}`);
      await runtime.services.log.whenDurable(runtime.services.log.lastSeq());
      held.push(delay.max / 1e6);
      const started = performance.now();
      JSON.stringify(JSON.parse(body.toString()));
      parsed.push(performance.now() - started);
    }
    const { status } = await set(sized(MIB + 1, 0));
    if (status !== 413) throw new Error(`1 MiB and a byte was answered ${status}`);
    return [
      {
        what: 'a config of 1 MiB (a byte more: 413) holds the thread for',
        ours: ms(median(held)),
        baseline: `${ms(median(parsed))} JSON.parse and stringify of it`,
        ratio: median(held) / median(parsed),
      },
    ];
  });
}

/** A config of exactly so many bytes, most of them many small fields. */
function sized(bytes: number, round: number): Buffer {
  const config = { ...largeConfig(round), ignoreNcid: true, extra: {} as Record<string, unknown>, fill: '' };
  for (let n = 0; JSON.stringify(config.extra).length < bytes * 0.85; n += 500) {
    for (let i = n; i < n + 500; i += 1)
      config.extra[`note${i}`] = { n: i, text: `leg ${i}`, on: i % 2 === 0 };
  }
  config.fill = 'x'.repeat(bytes - Buffer.byteLength(JSON.stringify(config)));
  return Buffer.from(JSON.stringify(config));
}
