import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import concurrentTest from 'ava';
import { z } from 'zod';
import {
  type ColumnarDatabase,
  ColumnarDatabaseToken,
} from '../../../src/core/contracts/columnar-database.ts';
import { type KubernetesApi, KubernetesToken } from '../../../src/core/contracts/kubernetes.ts';
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
import { fetchedOnce } from '../../../src/plugins/collector/rotation/effects.ts';
import type { RotationView } from '../../../src/plugins/collector/rotation/view.ts';
import { secretsEnvironment, secretsFolder } from '../../../src/plugins/secrets/index.ts';
import { openColumnar } from '../../support/columnar.ts';
import { Hyperdx } from '../../support/hyperdx.ts';
import { Refusal } from '../../support/kubernetes/index.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { effectiveYaml } from './effective.ts';
import { keysInCluster } from './keys-in-cluster.ts';
import { type Options, quick, startRig, until } from './rig.ts';

// One after another: thirty runtimes at once in one process would keep each other's requests past their deadlines.
const test = concurrentTest.serial;

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
  t.regex(shown.out, /regenerated[\s\S]*seen with the new key: router-edge[\s\S]*retired/);

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

const login = { email: 'ops@example.org', password: 'password-canary' };
function loginFile(dir: string, { email, password } = login): string {
  const file = join(dir, 'ui-login');
  writeFileSync(file, `${email}\n${password}\n`, { mode: 0o600 });
  return file;
}

/** A UI whose new key its collector adopts at once. */
async function uiWithCollector(t: Scope, dir: string, behind: 'ui' | 'nothing' = 'ui') {
  const file = join(dir, 'effective.yaml');
  const ui = await Hyperdx.start(t, { login, behind });
  writeFileSync(file, effectiveYaml({ tokens: [ui.apiKey] }));
  ui.regenerated = (key) => writeFileSync(file, effectiveYaml({ tokens: [key] }));
  const old = ui.apiKey;
  const options = { effectiveConfig: file, ui: { url: ui.url, loginFile: loginFile(dir) } };
  return { ui, old, options };
}

for (const behind of ['ui', 'nothing'] as const) {
  test(`[O9] the key is regenerated with the session of a login, addressed behind ${behind}`, async (t) => {
    const beganAt = Date.now();
    const dir = tempDir(t);
    const { ui, old, options } = await uiWithCollector(t, dir, behind);
    const { plugin, patched } = clusterPlugin();
    const refresh = {
      namespace: 'stack',
      secretSync: { name: 'otel-ingest' },
      deployments: ['scraper'],
      daemonSets: ['scraper-node'],
    };
    const rig = await startRig(t, dir, { ...options, refresh }, [secretsFolder(), plugin()]);
    rig.keys.judge(old, 'scraper');
    const begun = await rig.holdfast(...command, '--no-follow');
    t.is(begun.code, 3, begun.err);
    await until('the new key is stored', () => rig.state().startsWith('refresh'));
    const at = behind === 'ui' ? '/api' : '';
    t.deepEqual(ui.calls.slice(-3), [
      `GET ${at}/installation`,
      `POST ${at}/login/password`,
      `PATCH ${at}/team/apiKey`,
    ]);
    t.is(text(storeOf(dir)), ui.apiKey);
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
    t.true(forcedAt >= beganAt && forcedAt <= Date.now());
    const annotations = { 'kubectl.kubernetes.io/restartedAt': new Date(forcedAt).toISOString() };
    const restart = { spec: { template: { metadata: { annotations } } } };
    t.deepEqual(restarts, [restart, restart]);
    rig.keys.judge(ui.apiKey, 'scraper');
    await until('it is done', () => rig.state() === 'done');
    await rig.runtime.stop('to read its files');
    t.notRegex(readFileSync(join(dir, 'log.db'), 'latin1'), /password-canary|connect\.sid/);
  });
}

test('[O9] the UI has made the key once it answers 200, also when the body of its answer never comes', async (t) => {
  const dir = tempDir(t);
  const { ui, old, options } = await uiWithCollector(t, dir);
  ui.stalls = true;
  const rig = await startRig(t, dir, options);
  rig.keys.judge(old, 'scraper');
  const begun = await rig.holdfast(...command, '--no-follow');
  t.is(begun.code, 3, begun.err);
  await until('the key is stored, or the rotation has failed', () => /^(refresh|failed)/.test(rig.state()));
  t.regex(rig.state(), /^refresh/);
  t.is(text(storeOf(dir)), ui.apiKey);
  t.is(ui.calls.filter((call) => call.startsWith('PATCH')).length, 1);
});

/** What keeps Holdfast from making the key in the UI, and what it says of it. */
type Obstacle = [
  what: string,
  why: RegExp,
  obstacle: (ui: Hyperdx, dir: string) => Partial<NonNullable<Options['ui']>>,
];
const obstacles: Obstacle[] = [
  ['nobody gave it a login', /^make a new key by hand/, () => ({ loginFile: undefined })],
  [
    'its password is wrong',
    /does not know this e-mail address with this password; make a new key by hand/,
    (_ui, dir) => ({ loginFile: loginFile(dir, { ...login, password: 'password-canary-2' }) }),
  ],
  [
    'its login file has one line',
    /must hold an e-mail address in its first line/,
    (_ui, dir) => ({ loginFile: loginFile(dir, { email: 'a@example.org', password: '' }) }),
  ],
  ['the API is nowhere', /no API of the UI was found at http/, () => ({ apiPath: '/elsewhere' })],
  [
    'the session is for https alone',
    /the UI set no session: give the address by which people open it/,
    (ui) => {
      ui.isSecure = true;
      return {};
    },
  ],
  ...([401, 403] as const).map(
    (status): Obstacle => [
      `the UI answers its own session with ${status}`,
      new RegExp(`the UI does not accept its own session \\(${status}\\)`),
      (ui) => {
        ui.refusesKey = status;
        return {};
      },
    ],
  ),
  [
    'the UI has another path for it',
    /the UI has no http:\S+\/api\/team\/apiKey/,
    (ui) => {
      ui.refusesKey = 404;
      return {};
    },
  ],
  [
    'the password would leave in plaintext',
    /not sent in plaintext to ui\.example\.org/,
    () => ({ url: 'http://ui.example.org' }),
  ],
];
for (const [what, why, obstacle] of obstacles) {
  test(`[O9] a person makes the key, by exact steps, where ${what}`, async (t) => {
    const dir = tempDir(t);
    const { ui, old, options } = await uiWithCollector(t, dir);
    const more = obstacle(ui, dir);
    const rig = await startRig(t, dir, { ...options, ui: { ...options.ui, ...more } as Options['ui'] });
    const { code, out } = await rig.holdfast(...command, '--json');
    t.is(code, 3);
    const { note, state } = JSON.parse(out) as { note: string; state: string };
    t.is(state, 'adopting');
    t.regex(note, why);
    const page = (more.url ?? ui.url).concat('/team');
    t.true(note.includes(`log in, open ${page} (Team Settings), go to API Keys, press Rotate API Key`), note);
    t.is(ui.apiKey, old);
    t.notRegex(out, /canary/);
    // The person has done it.
    const fresh = randomUUID();
    ui.regenerated(fresh);
    await until('it is stored', () => /^(checking|refresh)/.test(rig.state()));
    t.is(text(storeOf(dir)), fresh);
  });
}

test('[O9] a UI whose document database is away fails the step, and a resumed rotation asks it again', async (t) => {
  const dir = tempDir(t);
  const { ui, options } = await uiWithCollector(t, dir);
  ui.sick = 503;
  const rig = await startRig(t, dir, options);
  const { code, out } = await rig.holdfast(...command);
  t.is(code, 1);
  t.regex(out, /not_regenerated.*503, as it does while its document database is away/);
  ui.sick = undefined;
  await rig.holdfast(...command, '--resume', '--no-follow');
  await until('it is stored', () => /^(checking|refresh)/.test(rig.state()));
  t.is(text(storeOf(dir)), ui.apiKey);
});

const metricRow = (ServiceName: string, at: number) => ({
  ServiceName,
  MetricName: 'up',
  TimeUnix: new Date(at).toISOString(),
  Value: 1,
});

test('[O9] a rotation beside a cluster is done when Secret, pods and metrics were looked at, and each loss of them is told', async (t) => {
  const dir = tempDir(t);
  const here = await keysInCluster(t, dir);
  const { api } = here;
  here.sync(here.collector, new Date(Date.now() - 3_600_000));
  here.restart(new Date(Date.now() - 3_600_000));
  const { database, close } = await openColumnar();
  t.teardown(close);
  const now = Date.now();
  const before = Array.from({ length: 10 }, (_, at) => metricRow('scraper', now - at * 300_000 - 60_000));
  await database.insert('otel_metrics_gauge', before);
  const rig = await startRig(t, dir, { ...here.options, rotation: { ...quick.rotation, lookMs: 50 } }, [
    ...here.others,
    databasePlugin(database)(),
  ]);
  const old = here.collector;
  const begun = await rig.holdfast(...command, '--no-follow');
  t.is(begun.code, 3, begun.err);
  here.collector = randomUUID();
  const view = async () =>
    JSON.parse((await rig.holdfast(...command, '--show', '--json')).out) as RotationView;
  const results = async () => (await view()).checks.map(({ check, result }) => `${check} ${result}`);
  const becomes = (what: string, wanted: string[]) =>
    until(what, async () => isDeepStrictEqual((await results()).slice(1), wanted));
  await becomes('nothing is refreshed', ['synced_secret not', 'pods not', 'metrics not']);
  t.is(text(storeOf(dir)), here.collector);
  t.regex((await view()).checks[1]?.text ?? '', /^Secret otel-ingest has another key \(fp_/);
  t.regex((await view()).checks[2]?.text ?? '', /scraper-0 runs since .*; the key was stored at/);
  t.regex((await view()).checks[3]?.text ?? '', /^no metrics since .* from scraper/);
  here.sync(here.collector, new Date(Date.now() + 10_000));
  await becomes('the Secret is synced', ['synced_secret ok', 'pods not', 'metrics not']);
  t.regex((await view()).checks[2]?.text ?? '', /its Secret was changed at/);
  // After the key was stored, and before the Secret had it.
  const early = new Date(Date.now() + 5_000);
  here.restart(early);
  await until('the pods have started too early', async () =>
    ((await view()).checks[2]?.text ?? '').includes(
      `scraper-0 runs since ${early.toISOString().slice(0, 19)}Z`,
    ),
  );
  here.restart(new Date(Date.now() + 12_000));
  await becomes('the pods are restarted', ['synced_secret ok', 'pods ok', 'metrics not']);
  api.mishap = ({ path }) => (path.includes('/secrets/') ? new Refusal(403, 'Forbidden', 'no') : undefined);
  await database.insert('otel_metrics_gauge', [metricRow('scraper', Date.now() + 1_000)]);
  await becomes('the Secret cannot be read', ['synced_secret not_checked', 'pods ok', 'metrics ok']);
  t.regex(rig.state(), /^(refresh|checking)/);
  api.mishap = () => undefined;
  await until('it is done', () => rig.state() === 'done');
  const shown = await rig.holdfast(...command, '--show');
  t.regex(
    shown.out,
    /refreshed as far as could be checked: 3 checks ok, 1 not checked\n +not checked +producers: .*\n +ok +synced Secret: Secret otel-ingest has the new key\n +ok +pods: 2 pods, all started since .*\n +ok +metrics: all 1 services/,
  );
  await rig.runtime.stop('to read its files');
  const log = readFileSync(join(dir, 'log.db'), 'latin1');
  t.regex(log, /"CHECKED"[^\n]*"not_checked"/);
  for (const key of [old, here.collector]) t.false((log + shown.out).includes(key));
});

test('[O9] a window that is over with nothing looked at is not called refreshed', async (t) => {
  const dir = tempDir(t);
  const { ui, options } = await uiWithCollector(t, dir);
  const rotation = { ...quick.rotation, lookMs: 20, refreshMs: 200 };
  const rig = await startRig(t, dir, { ...options, rotation });
  await rig.holdfast(...command, '--no-follow');
  await until('it is done', () => rig.state() === 'done');
  const { out } = await rig.holdfast(...command, '--show');
  t.notRegex(out, /producers refreshed/);
  t.regex(
    out,
    /refresh of producers not checked\n.*not checked +producers: .*\n.*not checked +synced Secret: .*refresh\.syncedSecret.*\n.*not checked +pods: .*\n.*not checked +metrics: no database/,
  );
  t.regex(out, /no external producer is listed\n.*old key ended when the collector adopted the new one/);
  t.is(text(storeOf(dir)), ui.apiKey);
});

test('[O9] a forced restart waits until the Secret has the new key: a pod that starts before reads the old one', async (t) => {
  const dir = tempDir(t);
  const here = await keysInCluster(t, dir);
  here.sync(here.collector, new Date(Date.now() - 3_600_000));
  here.restart(new Date(Date.now() - 3_600_000));
  // The window must not end by itself, however slow this machine is.
  const rotation = { ...quick.rotation, refreshMs: 600_000 };
  const rig = await startRig(t, dir, { ...here.options, rotation }, here.others);
  await rig.holdfast(...command, '--no-follow');
  here.collector = randomUUID();
  await until('it is stored', () => /^refresh/.test(rig.state()));
  const restarts: string[] = [];
  let [isAnnotated, looks] = [false, 0];
  here.api.store.on('changed', 'ExternalSecret', () => {
    isAnnotated = true;
  });
  // The new key comes at the third look, which itself sees it.
  here.api.mishap = ({ path }) => {
    if (!isAnnotated || !path.includes('/secrets/')) return undefined;
    looks += 1;
    if (looks === 3) here.sync(here.collector);
    if (looks <= 3) t.deepEqual(restarts, []);
    return undefined;
  };
  for (const kind of ['Deployment', 'DaemonSet']) {
    here.api.store.on('changed', kind, ({ metadata }) => void restarts.push(metadata.name));
  }
  await rig.holdfast(...command, '--force', '--no-follow');
  await until('both are restarted', () => restarts.length === 2);
  t.true(looks >= 3);
  const secret = here.api.store.find('Secret', 'otel-ingest', 'stack') as any;
  t.is(Buffer.from(secret.data.INGEST_TOKEN, 'base64').toString(), here.collector);
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
  'collector.check_refresh': () => ({ type: 'CHECKED', at: Date.now(), checks: [] }),
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
      context.actor(defineActor({ type: 'collector.key_rotation', machine: keyRotation, version: 2 }));
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
  // What is under way has its time to end, and takes it.
  await clock.passUntil(runtime.stop('killed'), 1_000);
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
  ['collector.check_refresh', 'nothing', () => {}],
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

function databasePlugin(database: ColumnarDatabase): () => PluginEntry {
  return definePlugin({
    name: 'columnar',
    options: z.strictObject({}),
    provides: [ColumnarDatabaseToken],
    register: (context) => context.provide(ColumnarDatabaseToken, () => database),
  });
}

/** A cluster that keeps what is patched, and has nothing to read. */
function clusterPlugin() {
  const patched: { kind: string; name: string; patch: object }[] = [];
  const cluster = {
    place: 'stand-in',
    patch: async ({ kind }: { kind: string }, name: string, _namespace: string, patch: object) => {
      patched.push({ kind, name, patch });
      return {};
    },
    get: async () => undefined,
  } as unknown as KubernetesApi;
  const plugin: () => PluginEntry = definePlugin({
    name: 'cluster',
    options: z.strictObject({}),
    provides: [KubernetesToken],
    register: (context) => context.provide(KubernetesToken, () => cluster),
  });
  return { plugin, patched };
}

test('[O9] a secret-sync object that is fetched once is told, because an annotation changes nothing', (t) => {
  const again = [{}, { refreshInterval: '1h' }, { refreshInterval: '10s' }];
  for (const spec of [...again, { refreshPolicy: 'OnChange', refreshInterval: '0' }]) {
    t.is(fetchedOnce(spec), undefined, JSON.stringify(spec));
  }
  t.is(fetchedOnce({ refreshPolicy: 'CreatedOnce', refreshInterval: '1h' }), 'refreshPolicy CreatedOnce');
  for (const refreshInterval of ['0', '0s', '0h0m0s']) {
    t.is(fetchedOnce({ refreshInterval }), `refreshInterval ${refreshInterval}`);
  }
  t.is(fetchedOnce({ refreshInterval: `${'0'.repeat(200)}x` }), undefined, 'a long text is matched at once');
});
