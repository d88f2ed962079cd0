import { readFileSync } from 'node:fs';
import test from 'ava';
import { ModelLedger } from '../../bench/cluster-simulation/ledger.ts';
import { takeover } from '../../bench/cluster-simulation/scenarios.ts';
import { simulationTables, withSimulation } from '../../bench/cluster-simulation/tables.ts';

test('[C13] docs/cluster.md has the figures that the simulation gives', (t) => {
  const page = readFileSync(new URL('../../docs/cluster.md', import.meta.url), 'utf8');
  t.is(withSimulation(page, simulationTables()), page, 'run `npm run cluster-simulation -- --write`');
});

test('[C13] in the simulation the next lease begins when the last is over, also where entries collide all the time', (t) => {
  for (const decision of ['expectation', 'order'] as const) {
    for (const wanMs of [undefined, 200]) {
      const { gap, worst } = takeover({ hosts: 30, decision, ttlMs: 15_000, seed: 7 }, 5, wanMs);
      t.true(gap > 0 && Number.isFinite(gap), `${decision} ${wanMs}: ${gap}`);
      t.true(Number.isFinite(worst), `${decision} ${wanMs}`);
    }
  }
});

test('[C13] where nothing fails, nothing moves in ten simulated minutes', (t) => {
  const ledger = new ModelLedger({ hosts: 10, decision: 'order', ttlMs: 15_000, seed: 3 });
  ledger.simulation.run(600_000);
  t.is(ledger.holders.length, 1);
  t.is(ledger.lapsed(), 0);
});
