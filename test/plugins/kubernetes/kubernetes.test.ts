import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { request } from 'undici';
import type { KubernetesObject } from '../../../src/core/contracts/kubernetes.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { kubernetesOptions } from '../../../src/plugins/kubernetes/connection.ts';
import { RemoteKubernetes } from '../../../src/plugins/kubernetes/remote-kubernetes.ts';
import { podOf, runsDeployments } from '../../support/kubernetes/behaviours.ts';
import { ClusterApi, type ClusterApiOptions, Refusal } from '../../support/kubernetes/index.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';

const SECRET = { apiVersion: 'v1', kind: 'Secret' };
const NAMESPACE = { apiVersion: 'v1', kind: 'Namespace' };

async function rig(t: Scope, options: ClusterApiOptions = {}, timeoutMs = 15_000) {
  const api = await ClusterApi.start(t, options);
  const kubeconfig = api.kubeconfig(tempDir(t));
  const cluster = new RemoteKubernetes(kubernetesOptions.parse({ kubeconfig, timeoutMs }), systemClock);
  t.teardown(() => cluster.close());
  return { api, cluster, kubeconfig };
}

const secret = (name: string, labels = {}): KubernetesObject => ({
  ...SECRET,
  metadata: { name, namespace: 'default', labels },
  data: { key: 'dmFsdWU=' },
});

test.serial(
  '[B3] an object is created, read, listed by label, changed and deleted by its kind alone',
  async (t) => {
    const { cluster } = await rig(t);
    const made = await cluster.create(secret('one', { app: 'store' }));
    t.truthy(made.metadata.uid);
    await cluster.create(secret('two'));
    const { objects: listed } = await cluster.list(SECRET, {
      namespace: 'default',
      labels: { app: 'store' },
    });
    t.deepEqual(
      listed.map(({ kind, metadata }) => [kind, metadata.name]),
      [['Secret', 'one']],
    );
    const changed = await cluster.patch(SECRET, 'one', 'default', {
      metadata: { annotations: { seen: 'yes' } },
    });
    t.deepEqual(changed.metadata.annotations, { seen: 'yes' });
    t.deepEqual((await cluster.get(SECRET, 'one', 'default'))?.data, { key: 'dmFsdWU=' });
    await cluster.delete(SECRET, 'one', 'default');
    t.is(await cluster.get(SECRET, 'one', 'default'), undefined);
    await t.notThrowsAsync(cluster.delete(SECRET, 'one', 'default'));
  },
);

const oneOfMany = (index: number) => ({
  ...SECRET,
  metadata: {
    name: `of-many-${index}`,
    namespace: 'default',
    labels: index % 2 === 0 ? { even: 'yes' } : {},
  },
});
const manySecrets = ({ store }: ClusterApi, count: number) => {
  for (let index = 0; index < count; index += 1) store.create(oneOfMany(index));
};

test.serial(
  '[O29] a list of 1,200 objects is read page after page, each object once, and is whole',
  async (t) => {
    const { api, cluster } = await rig(t);
    manySecrets(api, 1_200);
    const { objects, whole } = await cluster.list(SECRET, { namespace: 'default' });
    t.true(whole);
    t.is(objects.length, 1_200);
    t.is(new Set(objects.map(({ metadata }) => metadata.name)).size, 1_200);
    t.is(api.calls.filter((call) => call.endsWith('/secrets')).length, 3);
    const even = await cluster.list(SECRET, { namespace: 'default', labels: { even: 'yes' } });
    t.like([even.objects.length, even.whole], [600, true]);
  },
);

test.serial(
  '[O29] a list that expires between two pages is read from its start, and is not whole if it does so again',
  async (t) => {
    const { api, cluster } = await rig(t);
    manySecrets(api, 1_200);
    let expiring = 1;
    api.pages.onToken = (token) => {
      if (expiring === 0) return;
      expiring -= 1;
      api.pages.expire(token);
      // What was read before is not what there is now.
      api.store.delete('Secret', `of-many-${expiring}`, 'default');
    };
    const { objects, whole } = await cluster.list(SECRET, { namespace: 'default' });
    t.true(whole);
    t.is(objects.length, 1_199);
    t.false(objects.some(({ metadata }) => metadata.name === 'of-many-0'));
    expiring = Number.POSITIVE_INFINITY;
    api.pages.onToken = (token) => api.pages.expire(token);
    const partial = await cluster.list(SECRET, { namespace: 'default' });
    t.false(partial.whole);
    t.is(partial.objects.length, 500);
    api.mishap = () => new Refusal(410, 'Expired', 'too old');
    await t.throwsAsync(
      cluster.list(SECRET, {}),
      { message: /^HF_KUBERNETES_REFUSED.*HTTP 410/ },
      'without a token',
    );
  },
);

test.serial('[O29] a list beyond the bound of 5,000 objects says that it is not whole', async (t) => {
  const { api, cluster } = await rig(t);
  manySecrets(api, 5_000);
  t.true((await cluster.list(SECRET, { namespace: 'default' })).whole);
  api.store.create(oneOfMany(5_000));
  const { objects, whole } = await cluster.list(SECRET, { namespace: 'default' });
  t.false(whole);
  t.is(objects.length, 5_000);
});

test.serial('what the API refuses has a code, the reason it gave, and no credentials', async (t) => {
  const { api, cluster } = await rig(t, { token: 'canary-token' });
  await cluster.create(secret('one'));
  await t.throwsAsync(cluster.create(secret('one')), {
    message: /^HF_KUBERNETES_EXISTS: .*Secret one in namespace default/,
  });
  const nowhere = { ...secret('one'), metadata: { name: 'one', namespace: 'nowhere' } };
  await t.throwsAsync(cluster.create(nowhere), {
    message: /^HF_KUBERNETES_REFUSED: .*"nowhere" not found \(HTTP 404\)/,
  });
  await t.throwsAsync(cluster.create({ ...secret('odd'), dat: {} }), { message: /unknown field "dat"/ });
  const unknown = { apiVersion: 'velero.io/v2', kind: 'Restore' };
  await t.throwsAsync(cluster.list(unknown, {}), {
    message: /^HF_KUBERNETES_KIND: .*Restore \(velero.io\/v2\)/,
  });
  api.mishap = () => new Refusal(403, 'Forbidden', 'secrets is forbidden: User "x" cannot list');
  const refused = await t.throwsAsync(cluster.list(SECRET, {}), { message: /cannot list \(HTTP 403\)/ });
  t.false(JSON.stringify(refused).includes('canary-token'));
});

test.serial('an API that is silent, broken or gone is given up with a reason', async (t) => {
  const { api, cluster } = await rig(t, {}, 200);
  await cluster.list(SECRET, {});
  api.mishap = () => 'hang';
  await t.throwsAsync(cluster.list(SECRET, {}), {
    message: /^HF_KUBERNETES_UNREACHABLE: .*nothing came within 0.2 s/,
  });
  const gone = AbortSignal.abort();
  await t.throwsAsync(cluster.get(SECRET, 'one', 'default', gone), { message: /it was cancelled/ });
  await api.stop();
  await t.throwsAsync(cluster.list(SECRET, {}), { message: /ECONNREFUSED|broke off/ });
});

test.serial('a kubeconfig that cannot be used is named before anything is sent', async (t) => {
  const dir = tempDir(t);
  const list = (kubeconfig: string, context?: string) =>
    new RemoteKubernetes(kubernetesOptions.parse({ kubeconfig, context }), systemClock).list(SECRET, {});
  await t.throwsAsync(list(join(dir, 'none')), { message: /^HF_KUBERNETES_CONFIG: .*none: .*ENOENT/ });
  const file = join(dir, 'broken');
  writeFileSync(file, '{"clusters": 1');
  await t.throwsAsync(list(file), { message: /^HF_KUBERNETES_CONFIG/ });
  const { kubeconfig } = await rig(t);
  await t.throwsAsync(list(kubeconfig, 'other'), { message: /it has no context other/ });
  const plain = { server: 'http://192.0.2.1:8080' };
  const config = {
    clusters: [{ name: 'far', cluster: plain }],
    users: [{ name: 'far', user: { token: 'canary' } }],
    contexts: [{ name: 'far', context: { cluster: 'far', user: 'far' } }],
    'current-context': 'far',
  };
  writeFileSync(file, JSON.stringify(config));
  await t.throwsAsync(list(file), {
    message: /192.0.2.1:8080 is beyond this machine and not reached by https/,
  });
});

test.serial(
  'over HTTPS the certificate authority of the kubeconfig decides, and the token is sent',
  async (t) => {
    const dir = tempDir(t);
    const [key, cert] = [join(dir, 'key'), join(dir, 'cert')];
    const openssl = spawnSync('openssl', [
      ...[
        'req',
        '-x509',
        '-newkey',
        'ec',
        '-pkeyopt',
        'ec_paramgen_curve:prime256v1',
        '-nodes',
        '-days',
        '2',
      ],
      ...['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert],
    ]);
    t.is(openssl.status, 0, String(openssl.stderr));
    const tls = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
    const { cluster } = await rig(t, { tls, token: 'secret' });
    t.is((await cluster.list(NAMESPACE, {})).objects.length, 2);
    t.regex(cluster.place, /^https:\/\/127/);
    const other = await ClusterApi.start(t, { tls });
    const kubeconfig = other.kubeconfig(tempDir(t));
    const distrusted = readFileSync(kubeconfig, 'utf8').replace(
      /"certificate-authority-data":"[^"]*"/,
      '"x":1',
    );
    writeFileSync(kubeconfig, distrusted);
    const wary = new RemoteKubernetes(kubernetesOptions.parse({ kubeconfig }), systemClock);
    await t.throwsAsync(wary.list(NAMESPACE, {}), { message: /^HF_KUBERNETES_UNREACHABLE.*certificate/ });
  },
);

test.serial(
  '[B3] a namespace goes through Terminating with all that is in it, and takes nothing new meanwhile',
  async (t) => {
    const { api, cluster } = await rig(t);
    await cluster.create({ ...NAMESPACE, metadata: { name: 'scratch' } });
    const inside = { ...secret('one'), metadata: { name: 'one', namespace: 'scratch' } };
    await cluster.create(inside);
    api.store.namespaceEndsMs = 1_000; // longer than two requests take on a busy machine
    await cluster.delete(NAMESPACE, 'scratch');
    t.like(await cluster.get(NAMESPACE, 'scratch'), { status: { phase: 'Terminating' } });
    const late = { ...inside, metadata: { name: 'two', namespace: 'scratch' } };
    await t.throwsAsync(cluster.create(late), { message: /being terminated/ });
    while (await cluster.get(NAMESPACE, 'scratch')) await new Promise((resolve) => setTimeout(resolve, 5));
    t.is(await cluster.get(SECRET, 'one', 'scratch'), undefined);
  },
);

test.serial(
  '[B2] a port of a pod is reached over loopback, in both directions and by many connections',
  async (t) => {
    const { api, cluster } = await rig(t);
    const server = createServer((incoming, response) => {
      response.writeHead(200, { 'x-path': incoming.url });
      incoming.pipe(response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close());
    const { port: real } = server.address() as AddressInfo;
    api.reach = (pod, port) => (pod.metadata.name === 'store-0' && port === 6333 ? real : undefined);
    const spec = { template: { metadata: {}, spec: { containers: [{ name: 'store', image: 'store:1' }] } } };
    const owner = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'store', namespace: 'default', uid: 'of-the-owner' },
      spec,
    };
    api.store.create(podOf(owner, 'store-0'));
    const forward = await cluster.forward('default', 'store-0', 6333);
    const body = 'x'.repeat(300_000);
    const echoed = await Promise.all(
      [1, 2, 3].map(async (n) => {
        const answer = await request(`http://127.0.0.1:${forward.port}/${n}`, { method: 'POST', body });
        return [answer.headers['x-path'], (await answer.body.text()).length];
      }),
    );
    t.deepEqual(echoed, [
      ['/1', 300_000],
      ['/2', 300_000],
      ['/3', 300_000],
    ]);
    const closed = await cluster.forward('default', 'store-0', 1);
    await t.throwsAsync(request(`http://127.0.0.1:${closed.port}/`));
    const absent = await cluster.forward('default', 'gone', 6333);
    await t.throwsAsync(request(`http://127.0.0.1:${absent.port}/`));
    await forward.close();
    await t.throwsAsync(request(`http://127.0.0.1:${forward.port}/`));
  },
);

test.serial(
  '[O9] a command in a pod gives what it wrote and its exit code, and its failures have reasons',
  async (t) => {
    const { api, cluster } = await rig(t, { token: 'canary-token' }, 500);
    for (const [name, containers] of [
      ['collector-0', [{ name: 'collector', image: 'collector:1' }]],
      [
        'two',
        [
          { name: 'one', image: 'a:1' },
          { name: 'other', image: 'b:1' },
        ],
      ],
    ] as const) {
      api.store.create({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default' },
        spec: { containers },
      });
    }
    const long = 'x'.repeat(200_000);
    api.run = (_pod, [program, file]) => {
      if (program !== 'cat') return undefined;
      if (file === '/slow') return { hang: true };
      if (file === '/huge') return { output: 'x'.repeat(5 * 1024 * 1024) };
      return file === '/long' ? { output: long } : { exitCode: 1, errors: `cat: ${file}: No such file` };
    };
    const run = (...command: string[]) => cluster.exec('default', 'collector-0', command);
    t.deepEqual(await run('cat', '/long'), { exitCode: 0, output: long, errors: '' });
    t.deepEqual(await run('cat', '/none'), { exitCode: 1, output: '', errors: 'cat: /none: No such file' });
    await t.throwsAsync(run('ls'), {
      message: /^HF_KUBERNETES_UNREACHABLE.*"ls": executable file not found/,
    });
    await t.throwsAsync(run('cat', '/slow'), { message: /nothing came within 0.5 s/ });
    await t.throwsAsync(run('cat', '/huge'), { message: /wrote more than/ });
    await t.throwsAsync(cluster.exec('default', 'gone', ['cat']), {
      message: /HF_KUBERNETES_UNREACHABLE.*404/,
    });
    await t.throwsAsync(cluster.exec('default', 'two', ['cat', '/long']), { message: /400/ });
    const chosen = await cluster.exec('default', 'two', ['cat', '/long'], { container: 'other' });
    t.is(chosen.output.length, long.length);
    api.mishap = () => new Refusal(403, 'Forbidden', 'no');
    const refused = await t.throwsAsync(run('cat', '/long'), { message: /HF_KUBERNETES_UNREACHABLE.*403/ });
    t.false(JSON.stringify(refused).includes('canary-token'));
  },
);

test.serial('[B9] kubectl works against the stand-in: it creates, lists, waits, and deletes', async (t) => {
  const { api, kubeconfig } = await rig(t);
  runsDeployments(api);
  const dir = tempDir(t);
  const run = promisify(execFile);
  const kubectl = async (...args: string[]) => {
    const env = { ...process.env, HOME: dir, KUBECONFIG: kubeconfig };
    const { stdout } = await run('kubectl', args, { env, timeout: 20_000 });
    return stdout;
  };
  const file = join(dir, 'objects.json');
  const labels = { app: 'store' };
  const objects = [
    { ...NAMESPACE, metadata: { name: 'scratch' } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'store', namespace: 'scratch', labels },
      spec: {
        replicas: 1,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'store', image: 'store:1' }] } },
      },
    },
  ];
  writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
  t.regex(await kubectl('create', '--validate=false', '-f', file), /deployment.apps\/store created/);
  t.regex(
    await kubectl('get', 'deployments,pods', '-n', 'scratch', '-l', 'app=store'),
    /deployment.apps\/store/,
  );
  t.regex(
    await kubectl('wait', '--for=condition=Ready', 'pod/store-0', '-n', 'scratch', '--timeout=10s'),
    /met/,
  );
  t.regex(await kubectl('delete', 'namespace', 'scratch', '--timeout=10s'), /"scratch" deleted/);
  t.deepEqual(api.store.all('Pod', 'scratch'), []);
});

test.serial(
  'neither a broken kubeconfig nor its login program gives a token away or holds a call',
  async (t) => {
    const file = join(tempDir(t), 'kubeconfig');
    const fault = async (user: string, timeoutMs = 60_000) => {
      const text = `{apiVersion: v1, kind: Config, current-context: c}
clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users:
- name: u
  user:
${user}`;
      writeFileSync(
        file,
        text.replace(/^\{(.*)\}\n/, (_, head: string) => `${head.replaceAll(', ', '\n')}\n`),
      );
      const cluster = new RemoteKubernetes(
        kubernetesOptions.parse({ kubeconfig: file, timeoutMs }),
        systemClock,
      );
      const error = await t.throwsAsync(cluster.list(SECRET, {}));
      t.false(`${error?.stack}${JSON.stringify(error)}`.includes('canary'), user);
      return error?.message ?? '';
    };
    const exec = (script: string) =>
      `    exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: ['-c', '${script}']}\n`;
    t.regex(await fault('    token: canary-token\n   bad: ['), /^HF_KUBERNETES_CONFIG: .*no YAML at line 10/);
    t.regex(await fault(exec('echo canary-token')), /^HF_KUBERNETES_CONFIG: .*answered no JSON/);
    t.regex(await fault(exec('echo canary-token >&2; exit 1')), /^HF_KUBERNETES_CONFIG: .*failed/);
    t.regex(await fault(exec('sleep 1'), 300), /^HF_KUBERNETES_UNREACHABLE: .*nothing came within 0.3 s/);
  },
);
