import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import test from 'ava';
import type { CheckResult } from '../../../src/core/host/plugin/diagnosis.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { collectorOptions } from '../../../src/plugins/collector/options.ts';
import { lookAt } from '../../../src/plugins/collector/stack/checks.ts';
import { kubernetes } from '../../../src/plugins/kubernetes/index.ts';
import { RemoteKubernetes } from '../../../src/plugins/kubernetes/remote-kubernetes.ts';
import { secretsFolder } from '../../../src/plugins/secrets/index.ts';
import { ClusterApi, Refusal } from '../../support/kubernetes/index.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { startRig } from './rig.ts';

const NOW = Date.parse('2026-02-01T12:00:00Z');
const HOUR = 3_600_000;
const namespace = 'observability';
const ago = (hours: number) => new Date(NOW - hours * HOUR).toISOString();
const { signal } = new AbortController();

const stack = {
  namespace,
  documentDatabase: { statefulSet: 'docdb' },
  volumes: {
    columnarDatabase: [{ by: 'snapshots' as const, claims: ['data-db-0', 'data-db-1'] }],
    documentDatabase: [
      { by: 'velero' as const, schedule: 'default' },
      { by: 'snapshots' as const, claims: ['data-docdb-0'] },
    ],
    coordinationKeeper: [{ by: 'longhorn' as const, claims: ['data-keeper-0'] }],
  },
  certificateSecrets: ['edge-tls'],
};

/** A certificate for 90 days. */
let usual = '';
test.before(async () => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-certificate-'));
  usual = certificate(dir, 90).cert;
  rmSync(dir, { recursive: true });
  await import('@kubernetes/client-node'); // takes most of a second
});

/** A healthy stack in a cluster. */
async function healthy(t: Scope) {
  const dir = tempDir(t);
  const api = await ClusterApi.start(t);
  const { store } = api;
  for (const name of [namespace, 'velero']) {
    store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  const labels = { app: 'docdb' };
  const containers = [{ name: 'db', image: 'docdb:7' }];
  store.create({
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: 'docdb', namespace, generation: 4 },
    spec: {
      replicas: 3,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    },
    status: { replicas: 3, readyReplicas: 3, observedGeneration: 4 },
  });
  const budget = { currentHealthy: 3, desiredHealthy: 2, disruptionsAllowed: 1, expectedPods: 3 };
  store.create({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'docdb', namespace },
    spec: { minAvailable: 2, selector: { matchLabels: labels } },
    status: budget,
  });
  store.create({
    apiVersion: 'velero.io/v1',
    kind: 'Backup',
    metadata: { name: 'night-1', namespace: 'velero', labels: { 'velero.io/schedule-name': 'default' } },
    spec: { includedNamespaces: ['*'] },
    status: { phase: 'Completed', completionTimestamp: ago(8), csiVolumeSnapshotsCompleted: 3 },
  });
  for (const claim of ['data-db-0', 'data-db-1', 'data-docdb-0']) {
    store.create({
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { name: `${claim}-1`, namespace },
      spec: { source: { persistentVolumeClaimName: claim } },
      status: { readyToUse: true, creationTime: ago(8) },
    });
  }
  withLonghorn(store);
  const secret = (pem: string) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'edge-tls', namespace },
    type: 'kubernetes.io/tls',
    data: { 'tls.crt': Buffer.from(pem).toString('base64'), 'tls.key': '' },
  });
  store.create(secret(usual));
  const kube = new RemoteKubernetes(
    { kubeconfig: api.kubeconfig(dir), timeoutMs: 15_000, answerLimit: 1e6 },
    systemClock,
  );
  const options = collectorOptions.parse({ stack });
  const look = (part: Parameters<typeof lookAt>[0], others: object = {}, now = NOW): Promise<CheckResult> =>
    lookAt(part, { ...options, ...others }, kube, now, signal);
  return { api, store, look, dir, secret, kube, options };
}

const LONGHORN = 'longhorn.io/v1beta2';
const longhorn = 'longhorn-system';

/** The volume of the keeper's claim: three replicas, a backup of this night, and a job that makes the next one. */
function withLonghorn(store: ClusterApi['store']): void {
  store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: longhorn } });
  const make = (kind: string, name: string, spec: object, status: object = {}, labels: object = {}) =>
    store.create({
      apiVersion: LONGHORN,
      kind,
      metadata: { name, namespace: longhorn, labels },
      spec,
      status,
    });
  const claim = { namespace, pvcName: 'data-keeper-0', pvName: 'pvc-1', lastPVCRefAt: '' };
  make(
    'Volume',
    'pvc-1',
    { size: '1073741824', numberOfReplicas: 3, backupTargetName: 'default', dataEngine: 'v1' },
    { state: 'attached', robustness: 'healthy', kubernetesStatus: claim },
    { 'recurring-job-group.longhorn.io/nightly': 'enabled' },
  );
  for (const name of ['r-1', 'r-2', 'r-3']) {
    const spec = { volumeName: 'pvc-1', nodeID: `node-${name}`, healthyAt: ago(48), failedAt: '' };
    make('Replica', `pvc-1-${name}`, spec, { currentState: 'running' });
  }
  make(
    'Backup',
    'backup-1',
    { snapshotName: 'snap-1' },
    {
      ...{ state: 'Completed', progress: 100, volumeName: 'pvc-1' },
      ...{ snapshotCreatedAt: ago(8), backupCreatedAt: ago(7), lastSyncedAt: ago(7) },
    },
  );
  make(
    'Backup',
    'backup-of-another',
    {},
    {
      ...{ state: 'Completed', volumeName: 'pvc-2', snapshotCreatedAt: ago(1) },
    },
  );
  make(
    'Backup',
    'backup-2',
    { snapshotName: 'snap-2' },
    {
      ...{ state: 'InProgress', volumeName: 'pvc-1', snapshotCreatedAt: ago(0) },
    },
  );
  const pollInterval = '5m0s';
  make(
    'BackupTarget',
    'default',
    { backupTargetURL: 's3://backups@home/', pollInterval },
    {
      ...{ available: true, lastSyncedAt: ago(0) },
    },
  );
  make('RecurringJob', 'nightly', { task: 'backup', cron: '0 4 * * *', retain: 14, groups: ['nightly'] });
  make('RecurringJob', 'hourly', { task: 'snapshot', cron: '0 * * * *', retain: 24, groups: ['nightly'] });
}

const inLonghorn =
  (kind: string, name: string, change: object) =>
  ({ store }: Cluster) =>
    void store.set({ apiVersion: LONGHORN, kind }, name, longhorn, change);
const outOfLonghorn =
  (kind: string, name: string) =>
  ({ store }: Cluster) =>
    void store.delete({ apiVersion: LONGHORN, kind }, name, longhorn);

/** A certificate of this machine's clock. @param days that it is valid for */
function certificate(dir: string, days: number): { cert: string; key: string } {
  const [key, cert] = [join(dir, `${days}.key`), join(dir, `${days}.pem`)];
  const subject = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  execFileSync(
    'openssl',
    ['req', ...subject, '-days', String(days), '-subj', '/CN=localhost', '-keyout', key, '-out', cert],
    { stdio: 'ignore' },
  );
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
}

test.serial('[O29] a healthy stack in the cluster is ok in every part, with what was seen', async (t) => {
  const { look } = await healthy(t);
  t.like(await look('docdb_members'), { state: 'ok', found: '3 of 3 members are ready, 2 are needed' });
  t.like(await look('docdb_budget'), {
    state: 'ok',
    found: 'docdb (minAvailable 2) keeps 2 of 3 members; 3 are healthy, 1 may be evicted now',
  });
  t.like(await look('volume_replicas'), {
    state: 'ok',
    found: 'data-keeper-0 (pvc-1): 3 of 3 replicas are healthy',
  });
  t.like(await look('volumes'), {
    state: 'ok',
    found:
      "columnar database: snapshot of data-db-0: 8 h ago, snapshot of data-db-1: 8 h ago; document database: Velero's schedule default: 8 h ago; document database: snapshot of data-docdb-0: 8 h ago; coordination keeper: Longhorn's backup of data-keeper-0: 8 h ago; all of them crash-consistent, none a backup by the database itself",
  });
  const certificates = await look('certificates', {}, Date.now());
  t.like(certificates, { state: 'ok' });
  t.regex(certificates.found, /^Secret observability\/edge-tls: until \d{4}-\d\d-\d\d \((89|90) days\)$/);
});

type Cluster = Awaited<ReturnType<typeof healthy>>;
type Part = Parameters<typeof lookAt>[0];
const set =
  (kind: string, name: string, change: object, where = namespace) =>
  ({ store }: Cluster) =>
    void store.set(kind, name, where, change);
const remove =
  (kind: string, name: string, where = namespace) =>
  ({ store }: Cluster) =>
    void store.delete(kind, name, where);
const refused =
  (path: RegExp) =>
  ({ api }: Cluster) => {
    api.mishap = (request) =>
      path.test(request.path) ? new Refusal(403, 'Forbidden', 'the account may not list it') : undefined;
  };
const endless =
  (path: RegExp) =>
  ({ api }: Cluster) => {
    api.pages.endless = path;
  };
const members = (readyReplicas: number | null) =>
  set('StatefulSet', 'docdb', { status: { readyReplicas, replicas: 3, observedGeneration: 4 } });

type Loss = readonly [Part, string, (cluster: Cluster) => void, CheckResult['state'], RegExp];

function longhornLosses(): Loss[] {
  const health = (change: object) => inLonghorn('Volume', 'pvc-1', { status: change });
  const replicas: [string, Loss[2], Loss[3], RegExp][] = [
    ['it is degraded', health({ robustness: 'degraded' }), 'warn', /is degraded: 3 of 3/],
    ['it is faulted', health({ robustness: 'faulted' }), 'fail', /data-keeper-0 \(pvc-1\) is faulted/],
    [
      'it is detached',
      health({ robustness: 'unknown', state: 'detached' }),
      'unknown',
      /of a detached volume Longhorn knows no health/,
    ],
    ['Longhorn says nothing of it', health({ robustness: null, state: null }), 'unknown', /it is new/],
    [
      'a replica failed',
      inLonghorn('Replica', 'pvc-1-r-2', { spec: { failedAt: ago(1) } }),
      'warn',
      /2 of 3 replicas are healthy/,
    ],
    [
      'a replica is stopped',
      inLonghorn('Replica', 'pvc-1-r-2', { status: { currentState: 'error' } }),
      'warn',
      /2 of 3/,
    ],
    [
      'a replica was never healthy',
      inLonghorn('Replica', 'pvc-1-r-1', { spec: { healthyAt: '' } }),
      'warn',
      /2 of 3/,
    ],
    ['a replica is gone', outOfLonghorn('Replica', 'pvc-1-r-3'), 'warn', /2 of 3/],
    [
      'nobody knows how many there should be',
      inLonghorn('Volume', 'pvc-1', { spec: { numberOfReplicas: null } }),
      'unknown',
      /3 of an unknown number/,
    ],
    ['the volume is gone', outOfLonghorn('Volume', 'pvc-1'), 'unknown', /no volume of a claim/],
    [
      'the claim of the volume is history',
      health({ kubernetesStatus: { lastPVCRefAt: ago(5) } }),
      'unknown',
      /no volume of a claim/,
    ],
    [
      'the list of replicas is not whole',
      endless(/\/replicas$/),
      'unknown',
      /only the first 3 of Longhorn's Replicas/,
    ],
    ['the list of volumes is not whole', endless(/\/volumes$/), 'unknown', /only the first 1 of/],
    ['the account may not read', refused(/\/replicas$/), 'unknown', /may not list it/],
    ['the cluster has no Longhorn', ({ api }) => void api.absent.add(LONGHORN), 'unknown', /page not found/],
  ];
  const target = (status: object) => inLonghorn('BackupTarget', 'default', { status });
  const backup = (status: object) => inLonghorn('Backup', 'backup-1', { status });
  const backups: [string, Loss[2], Loss[3], RegExp][] = [
    [
      "Longhorn's backup is dated in the future",
      backup({ snapshotCreatedAt: ago(-2) }),
      'fail',
      /the newest good one is dated in the future/,
    ],
    [
      "Longhorn's backup is old",
      backup({ snapshotCreatedAt: ago(27) }),
      'fail',
      /data-keeper-0: the newest good one is 27 h old/,
    ],
    [
      "Longhorn's backup failed",
      backup({ state: 'Error', error: 'no space' }),
      'fail',
      /there is no good one/,
    ],
    ["Longhorn's backup has an error", backup({ error: 'no space' }), 'fail', /there is no good one/],
    ["Longhorn's backup has no date", backup({ snapshotCreatedAt: '' }), 'fail', /there is no good one/],
    ["Longhorn's backup is gone", outOfLonghorn('Backup', 'backup-1'), 'fail', /there is no good one/],
    ["Longhorn's volume is gone", outOfLonghorn('Volume', 'pvc-1'), 'fail', /no volume of this claim/],
    [
      'no recurring job is left',
      outOfLonghorn('RecurringJob', 'nightly'),
      'warn',
      /no recurring job makes the next/,
    ],
    [
      'the recurring job makes snapshots only',
      inLonghorn('RecurringJob', 'nightly', { spec: { task: 'snapshot' } }),
      'warn',
      /no recurring job/,
    ],
    [
      'the volume is in no group of the job',
      inLonghorn('Volume', 'pvc-1', {
        metadata: { labels: { 'recurring-job-group.longhorn.io/nightly': null } },
      }),
      'warn',
      /no recurring job/,
    ],
    ['the backup target is away', target({ available: false }), 'unknown', /default is not available/],
    [
      'the backup target was read in the future',
      target({ lastSyncedAt: ago(-2) }),
      'unknown',
      /was last read on 2026/,
    ],
    ['the backup target is old news', target({ lastSyncedAt: ago(27) }), 'unknown', /was last read on 2026/],
    ['the backup target was never read', target({ lastSyncedAt: null }), 'unknown', /was last read never/],
    [
      'the backup target is gone',
      outOfLonghorn('BackupTarget', 'default'),
      'unknown',
      /no backup target default/,
    ],
    ["Longhorn's backups are not whole", endless(/longhorn.*\/backups$/), 'unknown', /only the first 3 of/],
    ["Longhorn's objects may not be read", refused(/recurringjobs$/), 'unknown', /may not list it/],
    [
      'the cluster has lost Longhorn',
      ({ api }) => void api.absent.add(LONGHORN),
      'unknown',
      /page not found/,
    ],
  ];
  return [
    ...replicas.map((row): Loss => ['volume_replicas', ...row]),
    ...backups.map((row): Loss => ['volumes', ...row]),
  ];
}

/** Each takes away what one assurance rests on. */
const losses: readonly Loss[] = [
  ['docdb_members', 'one member is gone', members(2), 'warn', /2 of 3 members are ready.*0 more may be lost/],
  ['docdb_members', 'two members are gone', members(1), 'fail', /1 of 3 members are ready, 2 are needed/],
  ['docdb_members', 'all members are gone', members(null), 'fail', /0 of 3 members/],
  [
    'docdb_members',
    'it is scaled down',
    set('StatefulSet', 'docdb', { spec: { replicas: 2 } }),
    'warn',
    /the StatefulSet asks for 2/,
  ],
  ['docdb_members', 'it is deleted', remove('StatefulSet', 'docdb'), 'fail', /there is no such StatefulSet/],
  [
    'docdb_members',
    'its status is empty',
    set('StatefulSet', 'docdb', { status: null }),
    'unknown',
    /does not say how many/,
  ],
  [
    'docdb_members',
    'its status is old',
    set('StatefulSet', 'docdb', { status: { observedGeneration: 3 } }),
    'unknown',
    /its controller has not looked/,
  ],
  [
    'docdb_members',
    'the account may not read',
    refused(/statefulsets/),
    'unknown',
    /the account may not list it/,
  ],
  [
    'docdb_members',
    'the API is away',
    ({ api }) => void api.stop(),
    'unknown',
    /cluster API .* gave no usable answer/,
  ],
  ['docdb_budget', 'it is deleted', remove('PodDisruptionBudget', 'docdb'), 'fail', /none protects its pods/],
  [
    'docdb_budget',
    'it keeps one',
    set('PodDisruptionBudget', 'docdb', { spec: { minAvailable: 1 } }),
    'fail',
    /keeps 1 of 3 members, and 2 are needed/,
  ],
  [
    'docdb_budget',
    'it keeps a third',
    set('PodDisruptionBudget', 'docdb', { spec: { minAvailable: '33%' } }),
    'fail',
    /keeps 1 of 3/,
  ],
  [
    'docdb_budget',
    'it lets two go',
    set('PodDisruptionBudget', 'docdb', { spec: { minAvailable: null, maxUnavailable: 2 } }),
    'fail',
    /maxUnavailable 2\) keeps 1 of 3/,
  ],
  [
    'docdb_budget',
    'it protects others',
    set('PodDisruptionBudget', 'docdb', { spec: { selector: { matchLabels: { app: 'ui' } } } }),
    'fail',
    /none protects/,
  ],
  [
    'docdb_budget',
    'it selects by expressions',
    set('PodDisruptionBudget', 'docdb', {
      spec: { selector: { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['docdb'] }] } },
    }),
    'unknown',
    /by expressions/,
  ],
  [
    'docdb_budget',
    'too few are healthy',
    set('PodDisruptionBudget', 'docdb', { status: { currentHealthy: 1, disruptionsAllowed: 0 } }),
    'warn',
    /1 are healthy, 0 may be evicted/,
  ],
  [
    'docdb_budget',
    'its status is empty',
    set('PodDisruptionBudget', 'docdb', { status: null }),
    'unknown',
    /does not say how many are healthy/,
  ],
  [
    'docdb_budget',
    'the StatefulSet is gone',
    remove('StatefulSet', 'docdb'),
    'unknown',
    /there is no StatefulSet/,
  ],
  ['docdb_budget', 'the account may not read', refused(/poddisruptionbudgets/), 'unknown', /may not list it/],
  [
    'docdb_budget',
    'the list of budgets is not whole',
    endless(/poddisruptionbudgets/),
    'unknown',
    /only the first 1 budgets/,
  ],
  [
    'volumes',
    'the list of backups is not whole',
    endless(/backups/),
    'unknown',
    /schedule default: there are more than could be read/,
  ],
  [
    'volumes',
    'the list of snapshots is not whole',
    endless(/volumesnapshots/),
    'unknown',
    /snapshot of data-db-0: there are more than could be read/,
  ],
  [
    'volumes',
    'a backup holds objects only',
    set('Backup', 'night-1', { status: { csiVolumeSnapshotsCompleted: 0 } }, 'velero'),
    'fail',
    /night-1 is complete, and holds no copy of a volume/,
  ],
  [
    'volumes',
    'the copies of a backup are not whole',
    (here) => {
      set('Backup', 'night-1', { status: { csiVolumeSnapshotsCompleted: null } }, 'velero')(here);
      endless(/datauploads/)(here);
    },
    'unknown',
    /its copies of volumes could not be read/,
  ],
  [
    'volumes',
    'a backup is old',
    set('Backup', 'night-1', { status: { completionTimestamp: ago(27) } }, 'velero'),
    'fail',
    /schedule default: the newest good one is 27 h old/,
  ],
  [
    'volumes',
    'a backup is dated in the future',
    set('Backup', 'night-1', { status: { completionTimestamp: ago(-2) } }, 'velero'),
    'fail',
    /schedule default: the newest good one is dated in the future/,
  ],
  [
    'volumes',
    'a snapshot is dated in the future',
    set('VolumeSnapshot', 'data-db-1-1', { status: { creationTime: ago(-2) } }),
    'fail',
    /data-db-1: the newest good one is dated in the future/,
  ],
  [
    'volumes',
    'a backup has failed in part',
    set('Backup', 'night-1', { status: { phase: 'PartiallyFailed' } }, 'velero'),
    'fail',
    /there is no good one/,
  ],
  [
    'volumes',
    'a backup has warnings',
    set('Backup', 'night-1', { status: { warnings: 1 } }, 'velero'),
    'fail',
    /there is no good one/,
  ],
  [
    'volumes',
    'a backup leaves the namespace out',
    set('Backup', 'night-1', { spec: { excludedNamespaces: [namespace] } }, 'velero'),
    'fail',
    /there is no good one/,
  ],
  [
    'volumes',
    'a backup is of another namespace',
    set('Backup', 'night-1', { spec: { includedNamespaces: ['agent-memory'] } }, 'velero'),
    'fail',
    /there is no good one/,
  ],
  ['volumes', 'backups are gone', remove('Backup', 'night-1', 'velero'), 'fail', /there is no good one/],
  [
    'volumes',
    'a snapshot is old',
    set('VolumeSnapshot', 'data-db-1-1', { status: { creationTime: ago(49) } }),
    'fail',
    /data-db-1: the newest good one is 49 h old/,
  ],
  [
    'volumes',
    'a snapshot is not ready',
    set('VolumeSnapshot', 'data-db-1-1', { status: { readyToUse: false } }),
    'fail',
    /data-db-1: there is no good one/,
  ],
  [
    'volumes',
    'a snapshot has an error',
    set('VolumeSnapshot', 'data-docdb-0-1', { status: { error: { message: 'disk' } } }),
    'fail',
    /data-docdb-0: there is no good one/,
  ],
  [
    'volumes',
    'a snapshot has no date',
    set('VolumeSnapshot', 'data-db-0-1', { status: { creationTime: null } }),
    'fail',
    /data-db-0: there is no good one/,
  ],
  ['volumes', 'the account may not read', refused(/volumesnapshots/), 'unknown', /may not list it/],
  ['volumes', 'the cluster has no such kind', refused(/apis\/snapshot/), 'unknown', /refused|may not list/],
  ...longhornLosses(),
  ['certificates', 'the Secret is gone', remove('Secret', 'edge-tls'), 'unknown', /there is no such Secret/],
  [
    'certificates',
    'the Secret is no certificate',
    set('Secret', 'edge-tls', { data: { 'tls.crt': 'eA==' } }),
    'unknown',
    /it has no certificate/,
  ],
  ['certificates', 'the account may not read', refused(/secrets/), 'unknown', /may not list it/],
];

for (const [part, what, lose, state, found] of losses) {
  test.serial(`[O29] stack.${part}: when ${what}, it is ${state}`, async (t) => {
    const healthyCluster = await healthy(t);
    const now = part === 'certificates' ? Date.now() : NOW;
    t.is((await healthyCluster.look(part, {}, now)).state, 'ok');
    lose(healthyCluster);
    const seen = await healthyCluster.look(part, {}, now);
    t.is(seen.state, state, seen.found);
    t.regex(seen.found, found);
    t.truthy(seen.remedy);
  });
}

test.serial(
  '[O29] a backup whose volumes the data mover copied is good, one of another namespace is not',
  async (t) => {
    const { look, store } = await healthy(t);
    store.set('Backup', 'night-1', 'velero', { status: { csiVolumeSnapshotsCompleted: 0 } });
    const upload = (sourceNamespace: string, phase: string) => ({
      apiVersion: 'velero.io/v2alpha1',
      kind: 'DataUpload',
      metadata: { name: 'night-1-x', namespace: 'velero', labels: { 'velero.io/backup-name': 'night-1' } },
      spec: {
        ...{ backupStorageLocation: 'default', operationTimeout: '10m', snapshotType: 'CSI' },
        ...{ sourceNamespace, sourcePVC: 'data-docdb-0' },
      },
      status: { phase },
    });
    for (const [of, phase, state] of [
      ['other', 'Completed', 'fail'],
      [namespace, 'Failed', 'fail'],
      [namespace, 'Completed', 'ok'],
    ] as const) {
      store.create(upload(of, phase));
      t.is((await look('volumes')).state, state, `${of} ${phase}`);
      store.delete('DataUpload', 'night-1-x', 'velero');
    }
  },
);

test.serial('[O29] a cluster that never had Longhorn has unknown replicas and backups of it', async (t) => {
  const { look, api } = await healthy(t);
  api.absent.add(LONGHORN);
  t.like(await look('volume_replicas'), {
    state: 'unknown',
    found: 'not checked: the cluster has no Longhorn',
  });
  const volumes = await look('volumes');
  t.is(volumes.state, 'unknown');
  t.regex(volumes.found, /longhorn\.io\/v1beta2/);
});

test.serial('[O29] what no option names, and what no cluster shows, is unknown, never ok', async (t) => {
  const { look, options } = await healthy(t);
  for (const part of [
    'docdb_members',
    'docdb_budget',
    'volumes',
    'volume_replicas',
    'certificates',
  ] as const) {
    t.is((await look(part, { stack: undefined })).state, 'unknown');
    t.is((await lookAt(part, options, undefined, NOW, signal)).state, 'unknown');
  }
  const { documentDatabase: _, ...rest } = options.stack ?? { namespace };
  t.is((await look('docdb_members', { stack: rest })).state, 'unknown');
  for (const volume of Object.keys(stack.volumes)) {
    const some = {
      ...stack,
      staleHours: 26,
      longhorn: { namespace: longhorn },
      volumes: { ...stack.volumes, [volume]: undefined },
    };
    const seen = await look('volumes', { stack: some });
    t.is(seen.state, 'unknown');
    t.regex(seen.found, new RegExp(`stack.volumes.${volume}. does not say`));
  }
});

test.serial(
  '[O29] a certificate that ends soon, has ended or is not valid yet is told, of a Secret and of a TLS endpoint',
  async (t) => {
    const { look, store, dir, secret } = await healthy(t);
    const { cert, key } = certificate(dir, 30);
    const server = createServer({ cert, key }, (socket) => socket.end());
    server.on('tlsClientError', () => {});
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    t.teardown(() => server.close());
    const endpoint = `127.0.0.1:${(server.address() as { port: number }).port}`;
    const served = { stack: undefined, tlsEndpoints: [endpoint] };
    const day = 24 * HOUR;
    const states = async (others: object) => {
      const found: string[] = [];
      for (const days of [-2, 0, 15, 17, 31])
        found.push((await look('certificates', others, Date.now() + days * day)).state);
      return found;
    };
    t.deepEqual(await states(served), ['fail', 'ok', 'ok', 'warn', 'fail']);
    store.delete('Secret', 'edge-tls', namespace);
    // A chain ends with whichever of its certificates ends first.
    store.create(secret(`${usual}${cert}`));
    t.deepEqual(await states({}), ['fail', 'ok', 'ok', 'warn', 'fail']);
    const both = await look('certificates', { tlsEndpoints: [endpoint] }, Date.now());
    t.is(both.found.split('; ').length, 2);
    const ui = { ui: { url: `https://${endpoint}`, regeneratePath: '/' }, stack: undefined };
    t.is(
      (await look('certificates', ui, Date.now() + 31 * day)).state,
      'fail',
      "the UI's own is looked at unasked",
    );
    await new Promise((done) => server.close(done));
    const away = await look('certificates', served, Date.now());
    t.like(away, { state: 'unknown' });
    t.regex(away.found, /ECONNREFUSED/);
  },
);

test.serial('[O29] doctor stack asks the running instance, and says unknown without one', async (t) => {
  const { api, dir, store } = await healthy(t);
  const backup = { status: { completionTimestamp: new Date(Date.now() - HOUR).toISOString() } };
  store.set('Backup', 'night-1', 'velero', backup);
  const rig = await startRig(t, tempDir(t), { stack }, [
    secretsFolder(),
    kubernetes({ kubeconfig: api.kubeconfig(dir) }),
  ]);
  const checks = async () => {
    const { out } = await rig.holdfast('doctor', 'stack', '--json');
    const found = JSON.parse(out).checks as (CheckResult & { name: string })[];
    return Object.fromEntries(found.map(({ name, state }) => [name.replace('stack.', ''), state]));
  };
  t.like(await checks(), { docdb_members: 'ok', docdb_budget: 'ok', volumes: 'fail', certificates: 'ok' });
  store.set('StatefulSet', 'docdb', namespace, { status: { readyReplicas: 1 } });
  t.like(await checks(), { docdb_members: 'fail' });
  await rig.runtime.stop('test');
  t.like(await checks(), {
    docdb_members: 'unknown',
    docdb_budget: 'unknown',
    volumes: 'unknown',
    certificates: 'unknown',
  });
  const { out } = await rig.holdfast('doctor', 'stack');
  t.regex(out, /^unknown {2}stack\.docdb_members +not checked: no instance here could look/m);
  t.regex(out, /checks: \d+ ok, \d+ warnings?, 6 unknown, 0 to fix/);
});
