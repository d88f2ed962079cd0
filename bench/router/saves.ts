import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import example from '../../src/plugins/router/embedded/example-network-config.json' with { type: 'json' };
import { RedisServer } from '../../test/support/redis.ts';
import { patience, perSecond, quantile, type Result, withScope } from '../measure.ts';
import { BareRedis } from './bare-redis.ts';
import { type Config, type Rig, startRig } from './rig.ts';

const WRITERS = 8;
const RACED = 150;
const SAVES = 10_000;
const EARLY = 0.2;

interface Store {
  active(): Promise<Config>;
  /** @returns whether it was accepted */
  set(config: Config): Promise<boolean>;
}

interface Race {
  readonly rate: number;
  readonly p99: number;
  readonly refused: number;
}

/** The second of two races: the first compiles the code of both sides, as in a process that lives for long. */
async function warmRace(store: Store): Promise<Race> {
  await race(store);
  return race(store);
}

/** Writers that read, change and post until so many saves have been accepted; who comes too late reads again. */
async function race(store: Store): Promise<Race> {
  const took: number[] = [];
  let refused = 0;
  const started = performance.now();
  const write = async (writer: number): Promise<void> => {
    while (took.length < RACED) {
      const config = await store.active();
      config.interface.vlan['eth1.20'].extra = { writer, at: performance.now() };
      const posted = performance.now();
      if (await store.set(config)) took.push(performance.now() - posted);
      else refused += 1;
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
  const seconds = (performance.now() - started) / 1_000;
  return { rate: took.length / seconds, p99: quantile(took, 0.99), refused };
}

interface Held {
  readonly saves: number;
  readonly heap: number;
  readonly rss: number;
}

/** Writers that overwrite whatever is there, so that each post is a save; what is held after some, and after all. */
async function many({ set }: Rig): Promise<{ early: Held; late: Held; rate: number }> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let saves = 0;
  const started = performance.now();
  const until = async (share: number): Promise<Held> => {
    const write = async (writer: number): Promise<void> => {
      const config: Config = structuredClone(example);
      while (saves < SAVES * share && performance.now() - started < patience() * share) {
        saves += 1;
        config.interface.vlan['eth1.20'].extra = { writer, saves };
        const { status } = await set({ ...config, ignoreNcid: true });
        if (status !== 200) throw new Error(`a save was answered ${status}`);
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, (_, writer) => write(writer)));
    collect();
    const { heapUsed, rss } = process.memoryUsage();
    return { saves, heap: heapUsed / 2 ** 20, rss: rss / 2 ** 20 };
  };
  const early = await until(EARLY);
  const late = await until(1);
  return { early, late, rate: saves / ((performance.now() - started) / 1_000) };
}

/** `/set` under load, the config in a real Redis. */
export async function saves(): Promise<Result[]> {
  return withScope(async (scope) => {
    const redis = await RedisServer.start(scope);
    const bare = new BareRedis(redis.client(scope, 3));
    await bare.set(example);
    const floor = await warmRace(bare);
    const rig = await startRig(scope, { redisUrl: redis.url });
    const raced = await warmRace({
      active: rig.active,
      set: async (config) => (await rig.set(config)).status === 200,
    });
    const { early, late, rate } = await many(rig);
    const what = `/set, ${WRITERS} racing writers`;
    const held = (of: 'heap' | 'rss'): Result => ({
      what: `${of === 'heap' ? 'heap' : 'resident memory'} after ${late.saves.toLocaleString('en')} saves`,
      ours: `${late[of].toFixed(0)} MB`,
      baseline: `${early[of].toFixed(0)} MB after ${early.saves.toLocaleString('en')} saves`,
      ratio: late[of] / early[of],
      target: 'flat',
      met: late[of] / early[of] < 1.15,
    });
    return [
      {
        what: `${what}, accepted (${raced.refused} refused)`,
        ours: perSecond(raced.rate),
        baseline: `${perSecond(floor.rate)} straight to Redis (${floor.refused} refused)`,
        ratio: raced.rate / floor.rate,
        target: '≥ 150/s',
        met: raced.rate >= 150,
      },
      {
        what: `${what}, p99`,
        ours: `${raced.p99.toFixed(1)} ms`,
        baseline: `${floor.p99.toFixed(1)} ms straight to Redis`,
        ratio: raced.p99 / floor.p99,
      },
      {
        what: `/set, ${WRITERS} writers that overwrite`,
        ours: perSecond(rate),
        baseline: `${perSecond(floor.rate)} straight to Redis, racing`,
        ratio: rate / floor.rate,
      },
      held('heap'),
      held('rss'),
    ];
  });
}
