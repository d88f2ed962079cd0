import { setTimeout as sleep } from 'node:timers/promises';
import { reconciler } from '../../src/plugins/reconciler/index.ts';
import example from '../../src/plugins/router/embedded/example-network-config.json' with { type: 'json' };
import { RedisServer } from '../../test/support/redis.ts';
import { type Result, withScope } from '../measure.ts';
import { BareRedis } from './bare-redis.ts';
import { heal, latency, SETTLE_MS } from './heal.ts';
import { startRig } from './rig.ts';

const SAVES = 1_000;

/** The reconciler's healing beside a real Redis. */
export async function healing(): Promise<Result[]> {
  return withScope(async (scope) => {
    const redis = await RedisServer.start(scope);
    const bare = new BareRedis(redis.client(scope, 3));
    await bare.set(example);
    const took: number[] = [];
    for (let round = 0; round < 200; round += 1) {
      const started = performance.now();
      await sleep(SETTLE_MS);
      await bare.set(await bare.active());
      took.push(performance.now() - started);
    }
    const floor = latency(took);
    const ours = await heal(await startRig(scope, { redisUrl: redis.url }, [reconciler()]), SAVES);
    const line = (at: 'p50' | 'p99') => ({
      what: `healed beside Redis, ${ours.count.toLocaleString('en')} saves, ${at}`,
      ours: `${ours[at].toFixed(1)} ms`,
      baseline: `${floor[at].toFixed(1)} ms settle, read and write straight to Redis`,
      ratio: ours[at] / floor[at],
    });
    return [line('p50'), { ...line('p99'), target: '< 100 ms', met: ours.p99 < 100 }];
  });
}
