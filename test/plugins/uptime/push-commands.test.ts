import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parseAllDocuments } from 'yaml';
import type { KubernetesApi, KubernetesObject } from '../../../src/core/contracts/kubernetes.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { kubernetesOptions } from '../../../src/plugins/kubernetes/connection.ts';
import { RemoteKubernetes } from '../../../src/plugins/kubernetes/remote-kubernetes.ts';
import { secretsFolder } from '../../../src/plugins/secrets/index.ts';
import { readStatus } from '../../../src/plugins/uptime/cluster-status.ts';
import { uptime } from '../../../src/plugins/uptime/index.ts';
import { IMAGE, pinned } from '../../deploy/manifests.ts';
import { call, root, writeConfig } from '../../support/cli.ts';
import { ClusterApi } from '../../support/kubernetes/index.ts';
import { complaints } from '../../support/kubernetes/schema.ts';
import { tempDir } from '../../support/temp.ts';

const TOKEN = 'pushtokenpushtoken';

/** A command line whose configuration names a monitor that answers so. */
async function commandLine(t: ExecutionContext, answer: { status: number; body: string } | string) {
  const cwd = tempDir(t);
  const asked: string[] = [];
  let url = String(answer);
  if (typeof answer !== 'string') {
    const server = createServer((request, response) => {
      asked.push(request.url!);
      response.writeHead(answer.status, { 'x-seen-by': `proxy ${request.url}` }).end(answer.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => server.close());
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }
  const folder = join(cwd, 'data', 'secrets', 'push');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'clickstack-watchdog'), TOKEN, { mode: 0o600 });
  writeConfig(cwd, `export default defineConfig({ plugins: [uptime({ url: '${url}', insecure: true })] });`, [
    `import { uptime } from '${root}src/plugins/uptime/index.ts';`,
  ]);
  return {
    asked,
    dataDir: join(cwd, 'data'),
    run: (...argv: string[]) => call([...argv, '--data-dir', join(cwd, 'data')], { cwd }),
  };
}

async function recordsOf(dataDir: string): Promise<LogRecord[]> {
  const reader = new SqliteReader(dataDir);
  try {
    return await Array.fromAsync(reader.read());
  } finally {
    reader.close();
  }
}

test('[O15,O23] the body of an answer that takes the beat is shown as it came, too', async (t) => {
  const body = `{"ok":true,"msg":"clickstack-watchdog is DOWN now: ${TOKEN}"}`;
  const shown = body.replace(TOKEN, '[token]');
  const taken = await commandLine(t, { status: 200, body });
  t.is((await taken.run('push', 'clickstack-watchdog', '--status', 'down')).out, `${shown}\n`);
  const { out } = await taken.run('push', 'doctor', 'clickstack-watchdog');
  t.true(out.includes(`2. body, as it came:\n     ${shown}\n`), out);
});

test('[O15] push shows the body whatever the status, and ends as the job does', async (t) => {
  const well = await commandLine(t, { status: 200, body: '{"ok":true}' });
  t.deepEqual(await well.run('push', 'clickstack-watchdog', '--msg', 'by me', '--ping', '7'), {
    code: 0,
    out: '{"ok":true}\n',
    err: '',
  });
  t.deepEqual(well.asked, [`/api/push/${TOKEN}?status=up&msg=by+me&ping=7`]);
  for (const wrong of [
    ['--ping', '-1'],
    ['--ping', '1.5'],
    ['--status', 'UP'],
  ]) {
    t.is((await well.run('push', 'clickstack-watchdog', ...wrong)).code, 2, wrong.join(' '));
  }
  t.regex((await well.run('push', 'absent')).err, /HF_UPTIME_TOKEN[\s\S]*secrets\/push\/absent/);

  const body = '{"ok":false,"msg":"SQLITE_BUSY: database is locked"}';
  const locked = await commandLine(t, { status: 404, body });
  const { code, out } = await locked.run('push', 'clickstack-watchdog');
  t.is(code, 1);
  t.is(
    out,
    `${body}\nPUSH DELIVERY FAILED: HTTP 404: SQLITE_BUSY: database is locked (wget exit status 8)\n`,
  );
  const records = await recordsOf(locked.dataDir);
  t.like(
    records.find(({ event }) => event.type === 'PUSH_REFUSED'),
    {
      actor: 'uptime.push/clickstack-watchdog',
      event: { status: 404, body, msg: 'SQLITE_BUSY: database is locked' },
    },
    'nobody else records why',
  );
  t.false(JSON.stringify(records).includes(TOKEN));
});

test('[O15] a running instance makes the push, with a token out of the secrets store, and keeps the answer', async (t) => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    response.writeHead(404).end('{"ok":false,"msg":"database is locked"}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const cwd = tempDir(t);
  const dataDir = join(cwd, 'data');
  const folder = join(cwd, 'store');
  const options = { url, monitors: { stored: { secret: 'uptime/stored#token' } } };
  mkdirSync(join(folder, 'uptime', 'stored'), { recursive: true, mode: 0o700 });
  writeFileSync(join(folder, 'uptime', 'stored', 'token'), TOKEN, { mode: 0o600 });
  const entries = [uptime(options), secretsFolder({ folder })];
  writeConfig(
    cwd,
    `export default defineConfig({ plugins: [uptime(${JSON.stringify(options)}), secretsFolder({ folder: '${folder}' })] });`,
    [
      `import { uptime } from '${root}src/plugins/uptime/index.ts';`,
      `import { secretsFolder } from '${root}src/plugins/secrets/index.ts';`,
    ],
  );
  const push = () => call(['push', 'stored', '--data-dir', dataDir], { cwd });
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  t.regex((await push()).out, /PUSH DELIVERY FAILED: HTTP 404: database is locked/);
  t.like(runtime.services.actors.snapshot('uptime.push/stored'), {
    value: 'failed',
    context: { last: 'HTTP 404: database is locked' },
  });
  await runtime.stop('the next one is made without an instance');
  t.is((await push()).code, 1);
  t.deepEqual(asked, Array(2).fill(`/api/push/${TOKEN}?status=up&msg=by+hand`));
  const refused = (await recordsOf(dataDir)).filter(({ event }) => event.type === 'PUSH_REFUSED');
  t.is(refused.length, 2);
});

test('[O23] doctor shows parity with its headers, the body, then the three checks in order, and no token', async (t) => {
  const absent = await commandLine(t, {
    status: 404,
    body: '{"ok":false,"msg":"Monitor not found or not active."}',
  });
  const { code, out } = await absent.run('push', 'doctor');
  t.is(code, 1);
  t.regex(
    out,
    /^1\. parity: .* HTTP 404\n[\s\S]*x-seen-by: proxy \/api\/push\/\S+[\s\S]*2\. body[\s\S]*"msg":"Monitor not found[\s\S]*3\. in this order:\n +fail monitor present and active: [\s\S]*\n +warn secret synced: [\s\S]*\n +ok +ping: 0 is a non-negative integer\n$/,
  );
  t.false(out.includes(TOKEN));
  t.deepEqual(
    absent.asked,
    [`/api/push/${TOKEN}?status=down&msg=push+doctor&ping=0&probe=1`],
    'it hides no sick stack',
  );

  const locked = await commandLine(t, { status: 404, body: '{"ok":false,"msg":"database is locked"}' });
  const said = JSON.parse((await locked.run('push', 'doctor', '--json')).out);
  t.like(said.checks[0], {
    state: 'warn',
    found: 'not known: the monitor refused for another reason: database is locked',
  });
  t.is((await locked.run('push', 'doctor', '--with-ping', 'x')).code, 2);

  const lost = await commandLine(t, 'http://nobody.invalid');
  const { out: unanswered } = await lost.run('push', 'doctor');
  t.regex(unanswered, /bad address is a fault of ndots/);
  t.regex(unanswered, /warn monitor present and active: not known: no answer came/);
});

test('[O23] the two throwaway pods hold no token and no service account, and pod A has the image of the job', async (t) => {
  const line = await commandLine(t, { status: 200, body: '' });
  const { out, code } = await line.run(
    'push',
    'doctor',
    '--manifests',
    '--image',
    'registry/job:1',
    '--url',
    'http://uptime:3001',
  );
  t.is(code, 0);
  const pods = parseAllDocuments(out).map((document) => document.toJS());
  t.is(pods.length, 2);
  for (const pod of pods) {
    const { kind, spec } = pod;
    t.is(kind, 'Pod');
    t.is(spec.restartPolicy, 'Never');
    t.false(spec.automountServiceAccountToken);
    t.deepEqual(spec.dnsConfig, { options: [{ name: 'ndots', value: '1' }] });
    t.deepEqual(complaints(pod), []);
  }
  const [parity, capture] = pods.map(({ spec }) => spec.containers[0]);
  t.is(parity.image, 'registry/job:1');
  t.deepEqual(parity.args.slice(0, 3), ['push', 'doctor', 'clickstack-watchdog'], 'the client of the job');
  t.deepEqual(pods[0].spec.volumes[0].secret, {
    secretName: 'clickstack-watchdog',
    defaultMode: 0o440,
    items: [{ key: 'token', path: 'push-token' }],
  });
  const secretKeyRef = { name: 'clickstack-watchdog', key: 'token' };
  t.deepEqual(capture.env, [{ name: 'PUSH_TOKEN', valueFrom: { secretKeyRef } }]);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the variable is the pod's
  t.true(capture.args[0].includes('"http://uptime:3001/api/push/${PUSH_TOKEN}?status=down&msg='));
  t.notRegex(out, /wget/, 'no image of ours has one');
  t.deepEqual(line.asked, [], 'nothing is pushed');
  t.is((await line.run('push', 'doctor', '--manifests')).code, 2, 'without the job nothing is guessed');
});

test('[O23] a real API says whether the secret is synced, and which image the job has', async (t) => {
  const api = await ClusterApi.start(t);
  const kubeconfig = api.kubeconfig(tempDir(t));
  const cluster = new RemoteKubernetes(
    kubernetesOptions.parse({ kubeconfig, timeoutMs: 10_000 }),
    systemClock,
  );
  t.teardown(() => cluster.close());
  const { signal } = new AbortController();
  const metadata = { name: 'clickstack-watchdog', namespace: 'clickstack' };
  t.like(await readStatus(cluster, 'clickstack', signal, NOW), { secret: 'absent' });
  api.store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'clickstack' } });
  api.store.create({
    ...(await pinned(tempDir(t)))['watchdog.cronjob.yaml']!,
    metadata,
  });
  api.store.create({
    apiVersion: 'external-secrets.io/v1',
    kind: 'ExternalSecret',
    metadata,
    status: {
      conditions: [{ type: 'Ready', status: 'True', reason: 'SecretSynced' }],
      refreshTime: '2026-01-02T11:30:00Z',
    },
  } as never);
  t.deepEqual(await readStatus(cluster, 'clickstack', signal, NOW), {
    secret: 'synced',
    why: 'ExternalSecret clickstack/clickstack-watchdog: Ready True, SecretSynced',
    image: IMAGE,
  });
});

const NOW = Date.parse('2026-01-02T12:00:00Z');

test('[O23] the secret is synced when its object says so, and was refreshed within its interval', async (t) => {
  const cluster = (conditions: unknown, at: unknown = '2026-01-02T11:30:00Z', spec: object = {}) =>
    ({
      get: async ({ kind }: { kind: string }) =>
        (kind === 'CronJob'
          ? { spec: { jobTemplate: { spec: { template: { spec: { containers: [{ image: 'job:2' }] } } } } } }
          : conditions && { spec, status: { conditions, refreshTime: at } }) as KubernetesObject | undefined,
    }) as unknown as KubernetesApi;
  const { signal } = new AbortController();
  const ready = { type: 'Ready', status: 'True', reason: 'SecretSynced' };
  t.like(await readStatus(cluster([ready]), 'ns', signal, NOW), { secret: 'synced', image: 'job:2' });
  const failing = { ...ready, status: 'False', reason: 'SecretSyncedError' };
  t.like(await readStatus(cluster([failing]), 'ns', signal, NOW), { secret: 'not synced' });
  t.like(await readStatus(cluster([]), 'ns', signal, NOW), { secret: 'not synced' });
  t.like(await readStatus(cluster(undefined), 'ns', signal, NOW), { secret: 'absent' });
  // The condition stays when the operator does not work any more; only the time of the refresh tells.
  const stateOf = async (at: unknown, spec?: object) =>
    (await readStatus(cluster([ready], at, spec), 'ns', signal, NOW)).secret;
  t.is(await stateOf('2026-01-02T09:00:00Z'), 'unknown', 'the interval is 1 h unless set');
  t.is(await stateOf('2026-01-02T09:00:00Z', { refreshInterval: '1h30m' }), 'synced');
  t.is(await stateOf('2026-01-02T11:30:00Z', { refreshInterval: '15s' }), 'unknown');
  t.is(await stateOf('2025-01-02T11:30:00Z', { refreshInterval: '0' }), 'synced', 'it is fetched once');
  t.is(await stateOf('2025-01-02T11:30:00Z', { refreshInterval: '0s' }), 'synced');
  t.is(await stateOf('2025-01-02T11:30:00Z', { refreshPolicy: 'CreatedOnce' }), 'synced');
  t.is(await stateOf('2025-01-02T11:30:00Z', { refreshPolicy: 'OnChange' }), 'synced');
  t.is(await stateOf('2026-01-02T11:30:00Z', { refreshInterval: 'often' }), 'unknown');
  t.is(await stateOf(null), 'unknown');
});
