import test from 'ava';
import { elapsed, given } from '../../../src/core/host/testing/index.ts';
import { unit as reconcilerUnit } from '../../../src/machines/reconciler/unit.ts';

const pause = { type: 'PAUSE', at: 1_000, by: 'someone', forMs: 60_000 } as const;
const started = { type: 'reconciler.started' };

test('[R33] a reconciler that was stopped starts again by itself, at the bound at the latest', (t) => {
  given(reconcilerUnit, {})
    .when(pause)
    .then({ state: 'paused', effects: [{ type: 'reconciler.stopped' }], timers: { bound: 60_000 } })
    .when({ ...pause, at: 2_000, forMs: 900_000 })
    .then({ state: 'paused', ignored: true, timers: { bound: 60_000 } })
    .when(elapsed('bound'))
    .then({ state: 'running', effects: [started], timers: {}, context: { pause: undefined } })
    .when({ ...pause, forMs: 1e12 })
    .then({ state: 'paused', effects: [{ type: 'reconciler.stopped' }], timers: { bound: 1_800_000 } })
    .when({ type: 'RESUME', by: 'someone' })
    .then({ state: 'running', effects: [started], timers: {} });
  for (const forMs of [0, -5]) {
    given(reconcilerUnit, {})
      .when({ ...pause, forMs })
      .then({ state: 'paused', effects: [{ type: 'reconciler.stopped' }], timers: { bound: 0 } });
  }
  t.pass();
});
