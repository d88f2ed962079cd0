import test from 'ava';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { actorRef } from '../../../src/core/kernel/ids.ts';
import { kubernetesOptions } from '../../../src/plugins/kubernetes/connection.ts';
import { kubernetes } from '../../../src/plugins/kubernetes/index.ts';
import { RemoteKubernetes } from '../../../src/plugins/kubernetes/remote-kubernetes.ts';
import { goodAmong } from '../../../src/plugins/memory/backups/cluster-backups.ts';
import { EMPTY_STORE } from '../../../src/plugins/memory/backups/effects.ts';
import { lookAtDeployment, missingSettings } from '../../../src/plugins/memory/deployment.ts';
import { memoryChecks } from '../../../src/plugins/memory/doctor.ts';
import { memoryOptions } from '../../../src/plugins/memory/options.ts';

import { ClusterApi, Refusal } from '../../support/kubernetes/index.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { startMemory } from '../memory-store/rig.ts';

const PREFIX = 'QDRANT__STORAGE__SNAPSHOTS_CONFIG__';
const env = (storage: string) => [
  { name: `${PREFIX}SNAPSHOTS_STORAGE`, value: storage },
  { name: `${PREFIX}S3_CONFIG__BUCKET`, value: 'memories' },
  { name: `${PREFIX}S3_CONFIG__ACCESS_KEY`, valueFrom: { secretKeyRef: { name: 's', key: 'access_key' } } },
  { name: `${PREFIX}S3_CONFIG__SECRET_KEY`, valueFrom: { secretKeyRef: { name: 's', key: 'secret_key' } } },
];
const deployment = (variables: object[]) => ({
  spec: { template: { spec: { containers: [{ env: variables }] } } },
});

test('[B7] object-store settings that the deployment lacks are named; from a Secret counts as set', (t) => {
  t.deepEqual(missingSettings(deployment(env('s3'))), []);
  t.deepEqual(missingSettings(deployment(env('local'))), [`${PREFIX}SNAPSHOTS_STORAGE`]);
  t.deepEqual(missingSettings(deployment(env('s3').slice(0, 3))), [`${PREFIX}S3_CONFIG__SECRET_KEY`]);
  t.is(missingSettings({}).length, 4);
});

test('[B7] settings from a whole ConfigMap or Secret count, under its prefix, and what env says goes before them', (t) => {
  const from = (envFrom: object[], variables: object[] = []) => ({
    spec: { template: { spec: { containers: [{ env: variables, envFrom }] } } },
  });
  const text = (values: Readonly<Record<string, string | undefined>>) => new Map(Object.entries(values));
  const sources = new Map([
    ['ConfigMap s3', text({ SNAPSHOTS_STORAGE: 's3', S3_CONFIG__BUCKET: 'memories' })],
    ['Secret s3-keys', text({ S3_CONFIG__ACCESS_KEY: undefined, S3_CONFIG__SECRET_KEY: undefined })],
    ['Secret empty', text({ S3_CONFIG__ACCESS_KEY: '', S3_CONFIG__SECRET_KEY: undefined })],
    ['ConfigMap disk', text({ [`${PREFIX}SNAPSHOTS_STORAGE`]: 'local' })],
  ]);
  const map = { prefix: PREFIX, configMapRef: { name: 's3' } };
  const keys = { prefix: PREFIX, secretRef: { name: 's3-keys' } };
  t.deepEqual(missingSettings(from([map, keys]), sources), []);
  t.is(missingSettings(from([map, keys])).length, 4, 'nothing was read');
  t.deepEqual(missingSettings(from([map]), sources), [
    `${PREFIX}S3_CONFIG__ACCESS_KEY`,
    `${PREFIX}S3_CONFIG__SECRET_KEY`,
  ]);
  t.is(
    missingSettings(from([{ ...map, prefix: '' }, keys]), sources).length,
    2,
    'the prefix belongs to the name',
  );
  const empty = { prefix: PREFIX, secretRef: { name: 'empty' } };
  t.deepEqual(missingSettings(from([map, empty]), sources), [`${PREFIX}S3_CONFIG__ACCESS_KEY`]);
  const later = { configMapRef: { name: 'disk' } };
  t.deepEqual(missingSettings(from([map, keys, later]), sources), [`${PREFIX}SNAPSHOTS_STORAGE`]);
  t.deepEqual(missingSettings(from([map, keys, later], env('s3').slice(0, 1)), sources), []);
  const emptied = [{ name: `${PREFIX}S3_CONFIG__BUCKET`, value: '' }];
  t.deepEqual(missingSettings(from([map, keys], emptied), sources), [`${PREFIX}S3_CONFIG__BUCKET`]);
});

test('[B10] only a backup that completed without errors and warnings is a good one', (t) => {
  const backup = (phase: string, at: string, more: object = {}) => ({
    metadata: { name: at },
    status: { phase, completionTimestamp: at, ...more },
  });
  const good = '2026-01-02T04:00:00Z';
  const all = [
    backup('Completed', good),
    backup('Completed', '2026-01-03T04:00:00Z', { warnings: 1 }),
    backup('PartiallyFailed', '2026-01-04T04:00:00Z'),
    { metadata: { name: 'new' } },
  ];
  t.like(goodAmong(all)[0], { name: good, at: Date.parse(good) });
  t.is(goodAmong(all).length, 1);
  t.deepEqual(goodAmong([]), []);
});

test('[B7] doctor memory says what is wrong with backups and deployment, and what to do', async (t) => {
  const look = async (memory?: object) => {
    const running = memory && { surfaces: {}, facts: { memory } };
    const context = { dataDir: '/nowhere', signal: AbortSignal.timeout(1_000), ...(running && { running }) };
    return Promise.all(memoryChecks.map((check) => check.run(context)));
  };
  const seen = (findings: string[] = [], unseen: string[] = []) => ({
    ...{ findings, unseen, at: '2026-01-02T04:00:00.000Z', isOld: false },
  });
  t.deepEqual(
    (await look()).map(({ state }) => state),
    ['unknown', 'unknown'],
  );
  t.deepEqual(
    (await look({ snapshot: { stale: false }, seeds: 16 })).map(({ state }) => state),
    ['unknown', 'unknown'],
  );
  t.deepEqual(
    (await look({ snapshot: { stale: false }, seeds: 16, deployment: seen() })).map(({ state }) => state),
    ['unknown', 'ok'],
  );
  const unsaid = { snapshot: { stale: false }, seeds: 16 };
  const partial = await look({ ...unsaid, deployment: seen([], ['schedule x has more backups']) });
  t.like(partial[1], { state: 'unknown', found: 'not checked: schedule x has more backups' });
  const old = await look({ ...unsaid, deployment: { ...seen(), isOld: true } });
  t.like(old[1], { state: 'unknown', found: 'not checked since 2026-01-02T04:00:00.000Z' });
  t.is((await look({ ...unsaid, deployment: [] }))[1]?.state, 'unknown', 'of another form');
  const [backups, store] = await look({
    snapshot: { stale: true },
    seeds: 16,
    deployment: seen(['it lacks BUCKET']),
  });
  t.like(backups, { state: 'fail', found: 'no good snapshot for too long' });
  t.like(store, { state: 'fail', found: 'it lacks BUCKET' });
  t.is((await look({ snapshot: { stale: false }, seeds: 0 }))[0]?.state, 'warn');
  const empty = { fault: EMPTY_STORE, stale: false };
  t.like((await look({ snapshot: empty, volume: empty }))[0], { state: 'warn', found: EMPTY_STORE });
  t.is((await look({ snapshot: { ...empty, stale: true }, volume: empty }))[0]?.state, 'fail');
});

test('[B7, B8, B10] the deployment and its volume backups are looked at in the cluster, and what is wrong is an alert', async (t) => {
  const api = await ClusterApi.start(t);
  const kubeconfig = api.kubeconfig(tempDir(t));
  const clock = new VirtualClock();
  const elsewhere = await startMemory(t);
  const { runtime } = await startMemory(t, {
    clock,
    memory: { url: elsewhere.url },
    plugins: [kubernetes({ kubeconfig })],
  });
  const { store } = api;
  for (const name of ['agent-memory', 'velero']) {
    store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  const container = { name: 'qdrant', image: 'qdrant/qdrant:v1.19.0', env: env('s3').slice(0, 2) };
  const labels = { app: 'qdrant' };
  store.create({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'qdrant', namespace: 'agent-memory' },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
    },
  });
  const transfer = {
    backupStorageLocation: 'default',
    node: 'node-1',
    pod: { kind: 'Pod', namespace: 'agent-memory', name: 'qdrant-0' },
    repoIdentifier: 'agent-memory-kopia',
    volume: 'storage',
  };
  const velero = (kind: string, name: string, label: object, status: object) =>
    store.create({
      apiVersion: 'velero.io/v1',
      kind,
      metadata: { name, namespace: 'velero', labels: label },
      spec: kind === 'PodVolumeBackup' ? transfer : {},
      status,
    });
  const schedule = { 'velero.io/schedule-name': 'agent-memory-pvc-backup' };
  const good = (at: number) => ({ phase: 'Completed', completionTimestamp: new Date(at).toISOString() });
  velero('Backup', 'night-1', schedule, good(clock.now() - 25 * 3_600_000));
  velero(
    'PodVolumeBackup',
    'night-1-x',
    { 'velero.io/backup-name': 'night-1' },
    { progress: { totalBytes: 9_000 } },
  );
  const seen = async (isSo: (findings: readonly string[]) => boolean): Promise<readonly string[]> => {
    for (const end = performance.now() + PATIENCE_MS; performance.now() < end; ) {
      const state = runtime.services.actors.snapshot(actorRef('memory.backups', 'snapshot'));
      const { deployment = [] } = (state?.context ?? {}) as { deployment?: readonly string[] };
      if (isSo(deployment)) return deployment;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error('it was not seen');
  };
  await clock.advance(30_000);
  const found = await seen((findings) => findings.length > 0);
  t.deepEqual(found, [
    `agent-memory/qdrant lacks ${PREFIX}S3_CONFIG__ACCESS_KEY, ${PREFIX}S3_CONFIG__SECRET_KEY`,
    'night-1 has 9000 bytes of the volume, while 196000000 are usual',
  ]);
  const told = async (): Promise<string> => {
    const texts: string[] = [];
    for await (const record of runtime.services.log.read({})) texts.push(JSON.stringify(record.effects));
    return texts.join();
  };
  let raised = '';
  for (const end = performance.now() + PATIENCE_MS; performance.now() < end; ) {
    raised = await told();
    if (raised.includes('memory.deployment')) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  t.regex(raised, /alerts\.raise.*memory\.deployment.*ACCESS_KEY/);
  // The rest comes from a Secret, which is not there at first, and then may not be read.
  const prefix = `${PREFIX}S3_CONFIG__`;
  const envFrom = [{ prefix, secretRef: { name: 's3-keys' } }];
  store.set('Deployment', 'qdrant', 'agent-memory', {
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ ...container, envFrom }] } },
    },
  });
  await clock.advance(22.5 * 60_000);
  await seen((findings) =>
    findings.includes('there is no Secret agent-memory/s3-keys, which its environment names'),
  );
  const data = { ACCESS_KEY: 'eA==', SECRET_KEY: 'eA==' };
  store.create({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 's3-keys', namespace: 'agent-memory' },
    data,
  });
  api.mishap = ({ path }) =>
    path.endsWith('/s3-keys') ? new Refusal(403, 'Forbidden', 'no right to read it') : undefined;
  await clock.advance(3_600_000);
  await seen((findings) =>
    findings.some((one) => /cannot be told what Secret .*no right to read it/.test(one)),
  );
  api.mishap = () => undefined;
  // To the very moments: what runs then has deadlines on this clock.
  await clock.advance(3_600_000);
  await seen((findings) => !findings.some((one) => /lacks|s3-keys/.test(one)));
  t.deepEqual(await seen((findings) => findings.length > 1), [
    'agent-memory-pvc-backup has had no good backup of the volume for 26 h',
    'night-1 has 9000 bytes of the volume, while 196000000 are usual',
  ]);
});

test('[B7,B10] the deployment is good only when all that its assurance rests on was read, and read lately', async (t) => {
  const api = await ClusterApi.start(t);
  const kube = new RemoteKubernetes(
    kubernetesOptions.parse({ kubeconfig: api.kubeconfig(tempDir(t)), timeoutMs: 15_000 }),
    systemClock,
  );
  const { store } = api;
  for (const name of ['agent-memory', 'velero']) {
    store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  const labels = { app: 'qdrant' };
  const containers = [{ name: 'qdrant', image: 'qdrant/qdrant:v1.19.0', env: env('s3') }];
  store.create({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'qdrant', namespace: 'agent-memory' },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  });
  store.create({
    apiVersion: 'velero.io/v1',
    kind: 'Backup',
    metadata: {
      name: 'night-1',
      namespace: 'velero',
      labels: { 'velero.io/schedule-name': 'agent-memory-pvc-backup' },
    },
    spec: {},
    status: { phase: 'Completed', completionTimestamp: '2026-01-02T04:00:00Z' },
  });
  const upload = {
    apiVersion: 'velero.io/v2alpha1',
    kind: 'DataUpload',
    metadata: { name: 'night-1-x', namespace: 'velero', labels: { 'velero.io/backup-name': 'night-1' } },
    spec: {
      ...{ backupStorageLocation: 'default', operationTimeout: '10m', snapshotType: 'CSI' },
      ...{ sourceNamespace: 'agent-memory', sourcePVC: 'qdrant-data' },
    },
    status: { phase: 'Completed', progress: { totalBytes: 196_000_000 } },
  };
  store.create(upload);
  const now = Date.parse('2026-01-02T12:00:00Z');
  const look = () => lookAtDeployment(kube, memoryOptions.parse({}), now, AbortSignal.timeout(10_000));
  t.deepEqual(await look(), { findings: [], unread: [], unseen: [] });
  const early = Date.parse('2026-01-01T12:00:00Z');
  const ahead = await lookAtDeployment(kube, memoryOptions.parse({}), early, AbortSignal.timeout(10_000));
  t.is(ahead.findings.length, 2);
  t.regex(ahead.findings.join(), /had no good backup of the volume for \d+ h,dated in the future: night-1/);
  api.pages.endless = /\/backups/;
  t.like(await look(), {
    findings: [],
    unseen: ['agent-memory-pvc-backup has more backups than the 1 that could be read'],
  });
  const unsized = ['the cluster does not say how many bytes of the volume night-1 has'];
  api.pages.endless = /datauploads/;
  t.like(await look(), { findings: [], unseen: unsized });
  api.pages.endless = undefined;
  store.delete('DataUpload', 'night-1-x', 'velero');
  t.like(await look(), { findings: [], unseen: unsized });

  const keys = { prefix: PREFIX, secretRef: { name: 's3-keys' } };
  const lacksOne = [{ ...containers[0], env: env('s3').slice(0, 3), envFrom: [keys] }];
  store.delete('Deployment', 'qdrant', 'agent-memory');
  store.create({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'qdrant', namespace: 'agent-memory' },
    spec: {
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: lacksOne } },
    },
  });
  api.mishap = ({ path }) =>
    path.endsWith('/s3-keys') ? new Refusal(403, 'Forbidden', 'no right to read it') : undefined;
  const { findings, unread } = await look();
  t.deepEqual(findings, [], 'what is missing may be in the Secret');
  t.is(unread.length, 1);
  t.regex(unread[0] ?? '', /cannot be told what Secret agent-memory\/s3-keys sets: .*no right to read it/);
});
