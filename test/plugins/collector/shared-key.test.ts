import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { z } from 'zod';
import { type IngestKeys, IngestKeysToken } from '../../../src/core/contracts/ingest-keys.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { collector } from '../../../src/plugins/collector/index.ts';
import { ingestKeyChanged } from '../../../src/plugins/collector/shared-key.ts';
import { secretsFolder } from '../../../src/plugins/secrets/index.ts';
import { call } from '../../support/cli.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { MemoryCluster, startHost } from '../../support/two-hosts.ts';
import { read, until } from '../../support/until.ts';
import { quick } from './rig.ts';

const ROTATION = 'collector.key_rotation/otel_ingest_api_key';
const source = new URL('../../../src/', import.meta.url);

async function host(t: Scope, cluster: MemoryCluster, name: string, dataDir = tempDir(t)) {
  let keys: IngestKeys | undefined;
  const consumer = definePlugin({
    name: 'consumer',
    options: z.strictObject({}),
    requires: [IngestKeysToken],
    start(services) {
      keys = services.get(IngestKeysToken);
    },
    register() {},
  });
  const plugins = [
    consumer(),
    collector({ ...quick, rotation: { ...quick.rotation, lookMs: 50 } }),
    secretsFolder(),
  ];
  const started = await startHost(t, cluster, name, plugins, { dataDir });
  writeFileSync(
    join(dataDir, 'plugins.config.ts'),
    `import { defineConfig } from '${new URL('index.ts', source)}';
import { collector } from '${new URL('plugins/collector/index.ts', source)}';
export default defineConfig({ plugins: [collector()] });`,
  );
  const ring = keys as unknown as IngestKeys;
  return {
    ...started,
    current: () => ring.current(),
    admits: (key: string, producer: string) => ring.judge(key, producer).kind === 'accepted',
    rotate: (...flags: string[]) =>
      call(['stack', 'rotate-ingest-key', ...flags, '--data-dir', dataDir], { cwd: dataDir }),
    rotation: () => started.runtime.services.actors.snapshot(ROTATION)?.value,
    stored: () =>
      readFileSync(join(dataDir, 'secrets/store/observability/otel_ingest_api_key'), 'utf8').trim(),
    file: () => readFileSync(join(dataDir, 'secrets/otel_ingest_api_key'), 'utf8').trim(),
  };
}

test('[C13,O9] one host rotates the ingest key, and it is in force, stored and retired on every host', async (t) => {
  const cluster = new MemoryCluster();
  const a = await host(t, cluster, 'a');
  const b = await host(t, cluster, 'b');
  await until('a holds the rotation', () => cluster.holders.get('rotation')?.member.host === 'a');
  const old = await a.current();
  t.is(await b.current(), old);
  t.true(b.admits(old, 'scraper'));
  mkdirSync(join(b.dataDir, 'secrets/store/observability'), { recursive: true, mode: 0o700 });
  writeFileSync(join(b.dataDir, 'secrets/store/observability/otel_ingest_api_key'), `${old}\n`, {
    mode: 0o600,
  });

  const elsewhere = await b.rotate('--no-follow');
  t.regex(elsewhere.err, /HF_PLUGIN_ELSEWHERE/);
  const begun = await a.rotate('--no-follow');
  t.is(begun.code, 3, begun.err);
  await until('the new key is stored', () => String(a.rotation()).startsWith('refresh'));
  const fresh = await b.current();
  t.not(fresh, old);
  t.is(await a.current(), fresh);
  t.is(a.stored(), fresh);
  await until('the folder of the other host has it', () => b.stored() === fresh);
  t.is(b.file(), fresh);
  for (const { admits } of [a, b]) t.true(admits(old, 'another'));

  // The holder has never seen this producer: only the other host has.
  await until('the rotation waits for the producer of the other host', () =>
    JSON.stringify(a.runtime.services.actors.snapshot(ROTATION)?.context).includes('scraper'),
  );
  for (const producer of ['scraper', 'another']) t.true(b.admits(fresh, producer));
  await until('the old key is retired', () => a.rotation() === 'done');
  for (const { admits } of [a, b])
    await until('it admits nobody any more', () => !admits(old, 'late') && admits(fresh, 'late'));

  const log = [a, b].map(({ dataDir }) => readFileSync(join(dataDir, 'log.db'), 'latin1')).join();
  for (const key of [old, fresh]) t.false(log.includes(key));
});

test('[C13,O9] another host goes on with a rotation amid it, and the retirement reaches the first one', async (t) => {
  const cluster = new MemoryCluster();
  const a = await host(t, cluster, 'a');
  const b = await host(t, cluster, 'b');
  await until('a holds the rotation', () => cluster.holders.get('rotation')?.member.host === 'a');
  const old = await a.current();
  t.true(a.admits(old, 'scraper'));
  await a.rotate('--no-follow');
  await until('the new key is stored', () => String(a.rotation()).startsWith('refresh'));
  await cluster.move('rotation', 'b');
  t.is(a.rotation(), undefined);
  t.true(a.admits(await a.current(), 'scraper'));
  await until('the old key is retired', () => b.rotation() === 'done');
  await until('it admits nobody any more', () => !a.admits(old, 'late') && !b.admits(old, 'late'));
});

test('[C13,O9] the key that a host had before it joined admits there until the next one is retired', async (t) => {
  const dataDir = tempDir(t);
  mkdirSync(join(dataDir, 'secrets'), { mode: 0o700 });
  writeFileSync(join(dataDir, 'secrets/otel_ingest_api_key'), '7c9e6679-7425-40de-944b-e07fc1f90ae7\n', {
    mode: 0o600,
  });
  const before = '7c9e6679-7425-40de-944b-e07fc1f90ae7';
  const cluster = new MemoryCluster();
  const a = await host(t, cluster, 'a', dataDir);
  await until('a holds the rotation', () => cluster.holders.get('rotation')?.member.host === 'a');
  t.not(await a.current(), before);
  t.true(a.admits(before, 'scraper'));
  await a.rotate('--no-follow');
  await until('the rotation waits for the producer of the key before', () =>
    JSON.stringify(a.runtime.services.actors.snapshot(ROTATION)?.context).includes('scraper'),
  );
  t.true(a.admits(before, 'late'));
  t.not(a.rotation(), 'done');
  await delay(20); // sightings are known to the millisecond, give or take one
  for (const producer of ['scraper', 'late']) a.admits(await a.current(), producer);
  await until('the rotation is over', () => a.rotation() === 'done');
  await until('it admits no more', () => !a.admits(before, 'later'));
});

test('[C13,O9] a host that missed rotations of the ingest key, or is new, admits by the key in force and follows the next', async (t) => {
  const cluster = new MemoryCluster();
  const a = await host(t, cluster, 'a');
  const b = await host(t, cluster, 'b');
  const old = await a.current();
  mkdirSync(join(b.dataDir, 'secrets/store/observability'), { recursive: true, mode: 0o700 });
  writeFileSync(join(b.dataDir, 'secrets/store/observability/otel_ingest_api_key'), `${old}\n`, {
    mode: 0o600,
  });
  const renew = (from: string, to: string) =>
    a.runtime.services.bus.publish(ingestKeyChanged, { type: 'RENEWED', from, to });
  const currentOnA = (before: string) => read('another key is in force', a.current, (key) => key !== before);

  b.member.isCut = true;
  renew('first', 'second');
  a.runtime.services.bus.publish(ingestKeyChanged, { type: 'RETIRED', current: 'second' });
  const second = await currentOnA(old);
  await until('it is retired', () => !a.admits(old, 'late'));
  renew('second', 'third');
  const third = await currentOnA(second);

  t.true(b.admits(old, 'late'), 'it was away');
  await b.member.missed();
  const c = await host(t, cluster, 'c');
  t.is(await c.current(), old, 'it is new');
  await c.member.missed();
  for (const one of [b, c]) {
    await until('it has the key in force', async () => (await one.current()) === third);
    t.true(one.admits(second, 'late'), 'the one before it is not retired');
    t.false(one.admits(old, 'late'));
  }
  await until('its folder has it', () => b.stored() === third);

  renew('third', 'fourth');
  const fourth = await currentOnA(third);
  for (const one of [b, c]) await until('it follows', async () => (await one.current()) === fourth);
  a.runtime.services.bus.publish(ingestKeyChanged, { type: 'RETIRED', current: 'fourth' });
  for (const one of [a, b, c]) await until('only the newest admits', () => !one.admits(third, 'late'));
});
