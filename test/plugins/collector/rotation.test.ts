import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { z } from 'zod';
import { type Cluster, ClusterToken } from '../../../src/core/contracts/cluster.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { definePlugin, type PluginEntry } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { openVault } from '../../../src/core/host/secrets/vault.ts';
import { defineActor } from '../../../src/core/kernel/actors/definition.ts';
import type { LogEvent } from '../../../src/core/kernel/log/record.ts';
import { keyRotation } from '../../../src/machines/collector/key-rotation.ts';
import { rotationDefaults } from '../../../src/machines/collector/key-rotation-rules.ts';
import { OwnKey } from '../../../src/plugins/collector/key-source.ts';
import { secretsEnvironment, secretsFolder } from '../../../src/plugins/secrets/index.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { effectiveYaml } from './effective.ts';
import { quick, startRig, until } from './rig.ts';

const command = ['stack', 'rotate-ingest-key'];
const storeOf = (dir: string) => join(dir, 'secrets', 'store', 'observability', 'otel_ingest_api_key');
const text = (file: string) => readFileSync(file, 'utf8').trim();

test('[O9] our own key is rotated while producers move one by one, and no value is shown', async (t) => {
  const rig = await startRig(t, tempDir(t), { externalProducers: ['router-edge'] });
  const old = await rig.keys.current();
  rig.keys.judge(old, 'scraper');
  rig.keys.judge(old, 'router-edge');
  const plan = await rig.holdfast(...command, '--dry-run');
  t.is(plan.code, 0, plan.err);
  t.regex(plan.out, /Nothing is changed[\s\S]*scraper, router-edge[\s\S]*router-edge/);
  t.is(await rig.keys.current(), old);
  t.is(rig.state(), 'idle');

  const begun = await rig.holdfast(...command, '--no-follow', '--json');
  t.is(begun.code, 3, begun.err);
  await until('the new key is stored', () => rig.state().startsWith('refresh'));
  const fresh = await rig.keys.current();
  t.not(fresh, old);
  t.is(text(storeOf(rig.dir)), fresh);
  t.is(rig.keys.judge(old, 'scraper').kind, 'accepted');
  const again = await rig.holdfast(...command, '--json');
  t.regex(again.err, /HF_COLLECTOR_ROTATION.*under way/);

  rig.keys.judge(fresh, 'scraper');
  await until('those inside have moved', () => rig.state().startsWith('external'));
  const waiting = await rig.holdfast(...command, '--show', '--json');
  t.is(waiting.code, 3);
  t.like(JSON.parse(waiting.out), { pending: ['router-edge'], unconfirmed: ['router-edge'] });
  // Nobody waits for these: their names are no events.
  for (let index = 0; index < 300; index += 1) rig.keys.judge(fresh, `unheard-of-${index}`);
  rig.keys.judge(fresh, 'router-edge');
  await until('all have moved', () => rig.state() === 'done');
  t.is(rig.keys.judge(old, 'late').kind, 'unknown');
  t.is(rig.keys.judge(fresh, 'scraper').kind, 'accepted');
  const shown = await rig.holdfast(...command, '--show');
  t.is(shown.code, 0);
  t.regex(shown.out, /regenerated[\s\S]*retired/);

  await rig.runtime.stop('to read its files');
  const everything = [plan, begun, again, waiting, shown].map(({ out, err }) => out + err).join();
  const log = readFileSync(join(rig.dir, 'log.db'), 'latin1');
  t.regex(log, /"MOVED"[^}]*router-edge/);
  t.notRegex(log, /"MOVED"[^}]*unheard-of/);
  for (const key of [old, fresh]) t.false(everything.includes(key) || log.includes(key));
});

test('[O9,O25] the legacy token is refused by name, and stays as it is', async (t) => {
  const dir = tempDir(t);
  const rig = await startRig(t, dir);
  const { code, err } = await rig.holdfast(...command, 'otel_ingest_token');
  t.not(code, 0);
  t.regex(err, /HF_COLLECTOR_ROTATION.*never rotated, emptied or deleted/s);
  t.is(rig.state(), 'idle');
});

test('[O9] with a UI the key is asked for by its API, adopted by the config, refreshed in the cluster', async (t) => {
  const dir = tempDir(t);
  const file = join(dir, 'effective.yaml');
  const [old, fresh] = [randomUUID(), randomUUID()];
  writeFileSync(file, effectiveYaml({ tokens: [old] }));
  writeFileSync(join(dir, 'ui-token'), 'ui-token-canary', { mode: 0o600 });
  const asked: string[] = [];
  const ui = createServer((request, response) => {
    asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    response.end(JSON.stringify({ newApiKey: fresh }));
    writeFileSync(file, effectiveYaml({ tokens: [fresh] }));
  });
  await new Promise<void>((done) => ui.listen(0, '127.0.0.1', done));
  t.teardown(() => ui.close());
  const { plugin, patched } = clusterPlugin();
  const rig = await startRig(
    t,
    dir,
    {
      effectiveConfig: file,
      ui: {
        url: `http://127.0.0.1:${(ui.address() as AddressInfo).port}`,
        tokenFile: join(dir, 'ui-token'),
      },
      refresh: {
        namespace: 'stack',
        secretSync: { name: 'otel-ingest' },
        deployments: ['scraper'],
        daemonSets: ['scraper-node'],
      },
    },
    [secretsFolder(), plugin()],
  );
  rig.keys.judge(old, 'scraper');
  const begun = await rig.holdfast(...command, '--no-follow');
  t.is(begun.code, 3, begun.err);
  await until('the new key is stored', () => rig.state().startsWith('refresh'));
  t.deepEqual(asked, ['PATCH /api/team/apiKey Bearer ui-token-canary']);
  t.is(text(storeOf(dir)), fresh);
  t.is(rig.keys.judge(old, 'scraper').kind, 'unknown');
  await rig.holdfast(...command, '--force', '--no-follow');
  await until('the refresh is forced', () => patched.length === 3);
  t.deepEqual(
    patched.map(({ kind, name }) => `${kind} ${name}`),
    ['ExternalSecret otel-ingest', 'Deployment scraper', 'DaemonSet scraper-node'],
  );
  // A patch without a value that differs from the last one changes nothing, and nobody would read the key.
  const [sync, ...restarts] = patched.map(({ patch }) => patch as any);
  const forcedAt = Number(sync.metadata.annotations['force-sync']);
  t.true(forcedAt > Date.now() - 60_000 && forcedAt <= Date.now());
  const annotations = { 'kubectl.kubernetes.io/restartedAt': new Date(forcedAt).toISOString() };
  const restart = { spec: { template: { metadata: { annotations } } } };
  t.deepEqual(restarts, [restart, restart]);
  rig.keys.judge(fresh, 'scraper');
  await until('it is done', () => rig.state() === 'done');
});

test('[O9] the UI has made the key once it answers 200, also when the body of its answer never comes', async (t) => {
  const dir = tempDir(t);
  const file = join(dir, 'effective.yaml');
  const [old, fresh] = [randomUUID(), randomUUID()];
  writeFileSync(file, effectiveYaml({ tokens: [old] }));
  writeFileSync(join(dir, 'ui-token'), 'ui-token-canary', { mode: 0o600 });
  let calls = 0;
  const ui = createServer((_request, response) => {
    calls += 1;
    writeFileSync(file, effectiveYaml({ tokens: [fresh] }));
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 }).flushHeaders();
  });
  await new Promise<void>((done) => ui.listen(0, '127.0.0.1', done));
  t.teardown(() => {
    ui.closeAllConnections();
    ui.close();
  });
  const url = `http://127.0.0.1:${(ui.address() as AddressInfo).port}`;
  const rig = await startRig(t, dir, {
    effectiveConfig: file,
    ui: { url, tokenFile: join(dir, 'ui-token') },
  });
  rig.keys.judge(old, 'scraper');
  const begun = await rig.holdfast(...command, '--no-follow');
  t.is(begun.code, 3, begun.err);
  await until('the key is stored, or the rotation has failed', () => /^(refresh|failed)/.test(rig.state()));
  t.regex(rig.state(), /^refresh/);
  t.is(text(storeOf(dir)), fresh);
  t.is(calls, 1);
});

test('[O9] a store that can only be read has a person write, by the name of the place', async (t) => {
  const rig = await startRig(t, tempDir(t), {}, [secretsEnvironment()]);
  const begun = await rig.holdfast(...command);
  t.is(begun.code, 3);
  t.regex(begun.out, /variable HOLDFAST_SECRET_OBSERVABILITY_OTEL_INGEST_API_KEY, then add --stored/);
  const stored = await rig.holdfast(...command, '--stored');
  t.is(stored.code, 0, stored.err + stored.out);
  t.regex(stored.out, /old key retired/);
});

/** What each effect answers before the one at which the process ends. */
const answers: Record<string, (dir: string) => LogEvent> = {
  'collector.regenerate_key': () => ({ type: 'REGENERATED', at: 1 }),
  'collector.read_config': (dir) => ({ type: 'CONFIG_READ', at: 2, fingerprint: fingerprintIn(dir) }),
  'collector.store_key': () => ({ type: 'STORED', at: Date.now(), place: 'there' }),
  'collector.read_sightings': () => ({ type: 'SIGHTINGS_READ', at: Date.now(), old: [], fresh: [] }),
  'collector.force_refresh': () => ({ type: 'FORCED', at: Date.now(), what: [] }),
  'collector.retire_key': () => ({ type: 'RETIRED', at: 9 }),
};

function fingerprintIn(dir: string): string {
  return openVault(dir).fingerprint(new OwnKey(dir).read().current);
}

/** Brings a rotation to one of its effects in a process that ends before its outcome is known. */
async function interruptedAt(effect: string, dir: string): Promise<void> {
  const reached = Promise.withResolvers<void>();
  const half = definePlugin({
    name: 'collector',
    options: z.strictObject({}),
    register(context) {
      context.actor(defineActor({ type: 'collector.key_rotation', machine: keyRotation, version: 1 }));
      for (const [type, answer] of Object.entries(answers)) {
        context.effect(
          type,
          async (_params, { signal }) => {
            if (type !== effect) {
              if (type === 'collector.regenerate_key') new OwnKey(dir).regenerate();
              return answer(dir);
            }
            reached.resolve();
            return new Promise<LogEvent>((_done, failed) =>
              signal.addEventListener('abort', () => failed(signal.reason)),
            );
          },
          { onRecovery: 'retry' },
        );
      }
    },
  });
  const { plugins } = resolveConfig({ plugins: [half()] }, { env: {} });
  const clock = new VirtualClock();
  const runtime = createRuntime({ plugins, dataDir: dir, clock, logger: createLogger({ level: 'silent' }) });
  await runtime.start();
  const old = fingerprintIn(dir);
  const rotate = {
    ...{ type: 'ROTATE', at: Date.now(), name: 'otel_ingest_api_key', maker: 'own', old },
    ...{ producers: [], external: [], canForce: false, settings: { ...rotationDefaults, ...quick.rotation } },
  };
  runtime.services.actors.deliver('collector.key_rotation/otel_ingest_api_key', rotate as LogEvent, {
    correlation: 'c',
  });
  await reached.promise;
  const stopped = runtime.stop('killed');
  // What is under way has its time to end, and takes it.
  const passing = setInterval(() => void clock.advance(1_000), 5);
  await stopped;
  clearInterval(passing);
}

/** What may have been done of an effect when the process ended. */
const halfDone: [effect: string, what: string, left: (dir: string) => void][] = [
  ['collector.regenerate_key', 'nothing', () => {}],
  [
    'collector.regenerate_key',
    'the old key kept',
    (dir) => {
      const { file, regenerate } = new OwnKey(dir);
      const before = text(file);
      regenerate.call(new OwnKey(dir));
      writeFileSync(file, before);
    },
  ],
  ['collector.regenerate_key', 'everything', (dir) => new OwnKey(dir).regenerate()],
  ['collector.read_config', 'nothing', () => {}],
  ['collector.store_key', 'nothing', () => {}],
  ['collector.read_sightings', 'nothing', () => {}],
  ['collector.retire_key', 'nothing', () => {}],
  ['collector.retire_key', 'everything', (dir) => new OwnKey(dir).retire()],
];

for (const [effect, what, left] of halfDone) {
  test(`[O9] a process that ends during ${effect} with ${what} done is followed by one that ends the rotation`, async (t) => {
    const dir = tempDir(t);
    const old = new OwnKey(dir).read().current as string;
    await interruptedAt(effect, dir);
    left(dir);
    const rig = await startRig(t, dir);
    await until('it is done', () => rig.state() === 'done');
    const fresh = await rig.keys.current();
    t.not(fresh, old);
    t.is(rig.keys.judge(fresh, 'app').kind, 'accepted');
    t.is(rig.keys.judge(old, 'app').kind, 'unknown');
    t.false(existsSync(join(dir, 'secrets', 'otel_ingest_api_key.previous')));
    if (effect === 'collector.store_key') t.is(text(storeOf(dir)), fresh);
  });
}

/** A cluster that keeps what is patched. */
function clusterPlugin() {
  const patched: { kind: string; name: string; patch: object }[] = [];
  const cluster = {
    place: 'stand-in',
    patch: async ({ kind }: { kind: string }, name: string, _namespace: string, patch: object) => {
      patched.push({ kind, name, patch });
      return {};
    },
  } as unknown as Cluster;
  const plugin: () => PluginEntry = definePlugin({
    name: 'cluster',
    options: z.strictObject({}),
    provides: [ClusterToken],
    register: (context) => context.provide(ClusterToken, () => cluster),
  });
  return { plugin, patched };
}
