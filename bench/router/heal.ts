import { setTimeout as sleep } from 'node:timers/promises';
import { routerChannels } from '../../src/core/contracts/router.ts';
import { patience, quantile } from '../measure.ts';
import type { Rig } from './rig.ts';

/** The reconciler's settling, as its options have it: part of every healing, and of every baseline. */
export const SETTLE_MS = 25;
/** The legs look a second time after the start; no save is timed before. */
const START_MS = 2_000;

export interface Latency {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
}

export const latency = (values: readonly number[]): Latency => ({
  count: values.length,
  p50: quantile(values, 0.5),
  p99: quantile(values, 0.99),
});

/** From the channel's event of an app save that dropped an address to the save that holds it again. */
export async function heal({ runtime, active, set }: Rig, saves: number): Promise<Latency> {
  const took: number[] = [];
  let dropped = 0;
  let healed = () => {};
  runtime.services.bus.subscribe(routerChannels.changeApplied, 'bench', () => {
    if (dropped === 0) {
      dropped = performance.now();
      return;
    }
    took.push(performance.now() - dropped);
    healed();
  });
  await sleep(START_MS);
  const started = performance.now();
  for (let save = 0; save < saves && performance.now() - started < patience(); save += 1) {
    const config = await active();
    delete config.interface.vlan['eth1.10'].ipv6;
    dropped = 0;
    const again = new Promise<void>((resolve) => {
      healed = resolve;
    });
    await set(config);
    await again;
  }
  return latency(took);
}
