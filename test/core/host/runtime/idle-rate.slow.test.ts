import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { loadConfig } from '../../../../src/core/host/config/load.ts';
import { createLogger } from '../../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../../src/core/host/runtime/runtime.ts';
import type { LogRecord } from '../../../../src/core/kernel/log/record.ts';
import { PatientClock } from '../../../support/patient-clock.ts';
import { tempDir } from '../../../support/temp.ts';

const cwd = fileURLToPath(new URL('../../../../', import.meta.url));
const SURFACES = ['ROUTER', 'GATEWAY', 'OTLP_HTTP', 'OTLP_GRPC', 'UPTIME', 'MEMORY', 'CONSOLE'];
const MINUTE = 60_000;
const HOURS = 2;
test('[C10] an idle hour of the shipped configuration is fewer than 60 records, which have the number of looks', async (t) => {
  t.timeout(900_000);
  const ports = Object.fromEntries(SURFACES.map((surface) => [`HOLDFAST_${surface}_PORT`, '0']));
  const { plugins } = await loadConfig({ cwd, env: ports });
  const clock = new PatientClock(Date.UTC(2026, 5, 1, 10, 10));
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins, dataDir: tempDir(t), clock, logger, lingerMs: 0 });
  t.teardown(() => runtime.stop('test over'));
  let isStarted = false;
  const start = runtime.start().then(() => {
    isStarted = true;
  });
  while (!isStarted) {
    await clock.advance(0);
    await Promise.race([start, delay(5)]);
  }
  const { log } = runtime.services;
  const settled = () => log.whenDurable(log.lastSeq());
  const began = performance.now();
  await clock.pass(20 * MINUTE, settled);
  t.log(`20 min of warm-up took ${Math.round((performance.now() - began) / 1000)} s`);
  const hours: LogRecord[] = [];
  for (let hour = 1; hour <= HOURS; hour += 1) {
    const before = log.lastSeq();
    await clock.pass(60 * MINUTE, settled);
    const records: LogRecord[] = (await Array.fromAsync(log.read({}))).filter(({ seq }) => seq > before);
    hours.push(...records);
    const counts = Object.groupBy(records, ({ actor, event }) => `${actor.split('/')[0]} ${event.type}`);
    t.log(Object.entries(counts).map(([name, list = []]) => `${list.length} ${name}`));
    t.log(
      `hour ${hour}: ${records.length} records, after ${Math.round((performance.now() - began) / 1000)} s`,
    );
    t.true(records.length < 60, `hour ${hour}: ${records.length} records`);
  }
  // Between two records of an actor that counts, as many looks are counted as its interval allows.
  const everyMs = (actor: string) => {
    const { context } = runtime.services.actors.snapshot(actor) ?? {};
    const interval = (context as { readonly everyMs?: number } | undefined)?.everyMs;
    return actor.startsWith('watchdog.') ? 5 * MINUTE : (interval ?? 4 * MINUTE);
  };
  const counted = hours.filter(({ event }) => typeof event.looks === 'number');
  for (const [actor, records = []] of Object.entries(Object.groupBy(counted, (record) => record.actor))) {
    for (const [index, { at, event }] of records.entries()) {
      const before = records[index - 1];
      if (before) t.true(Math.abs(Number(event.looks) - (at - before.at) / everyMs(actor)) <= 1, actor);
    }
  }
  const actors = new Set(counted.map(({ actor }) => actor));
  for (const actor of [
    'alerts.rule/router-ula-reconcile',
    'reconciler.leg/eth1.10',
    'watchdog.run/clickstack-watchdog',
  ])
    t.true(actors.has(actor), `${actor} counts its looks`);
});
