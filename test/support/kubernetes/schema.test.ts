import test from 'ava';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { kubernetesOptions } from '../../../src/plugins/kubernetes/connection.ts';
import { RemoteKubernetes } from '../../../src/plugins/kubernetes/remote-kubernetes.ts';
import { tempDir } from '../temp.ts';
import { ClusterApi } from './index.ts';
import { cronJob } from './jobs.ts';
import { complaints } from './schema.ts';

/** The object with another value at a path, `undefined` for none. */
function altered(object: object, path: string, value: unknown): Record<string, any> {
  const copy: Record<string, any> = structuredClone(object);
  const keys = path.split('.');
  const last = keys.pop() ?? '';
  const place = keys.reduce((inner: any, key) => inner[key], copy);
  if (value === undefined) delete place[last];
  else place[last] = value;
  return copy;
}

const restore = {
  apiVersion: 'velero.io/v1',
  kind: 'Restore',
  metadata: { name: 'one', namespace: 'velero' },
  spec: { backupName: 'night-1', includedNamespaces: ['agent-memory'], namespaceMapping: { a: 'b' } },
  status: { phase: 'Completed' },
};
const secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'one' },
  data: { key: 'YWJj' },
};
const synced = {
  apiVersion: 'external-secrets.io/v1',
  kind: 'ExternalSecret',
  metadata: { name: 'one' },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
};
const POD = 'spec.jobTemplate.spec.template.spec';
const CONTAINER = `${POD}.containers.0`;

for (const [object, path, value, fault] of [
  [cronJob('one', 'ns'), 'spec.schedule', undefined, /missing required field "spec.schedule"/],
  [cronJob('one', 'ns'), 'spec.schedule', 'hourly', /spec\.schedule/],
  [cronJob('one', 'ns'), 'spec.schedule', '0 */5 * * * *', /exactly 5 fields/],
  [cronJob('one', 'ns'), 'spec.failedJobsHistoryLimit', 1.5, /must be an integer/],
  [cronJob('one', 'ns'), 'spec.failedJobsHistoryLimit', '1', /must be a number/],
  [cronJob('one', 'ns'), 'spec.deadline', 1, /unknown field "spec.deadline"/],
  [cronJob('one', 'ns'), `${POD}.restartPolicy`, 'Always', /Unsupported value: "Always"/],
  [cronJob('one', 'ns'), `${POD}.restartPolicy`, undefined, /Unsupported value: "Always"/],
  [cronJob('one', 'ns'), `${POD}.containers`, undefined, /missing required field "[\w.]+\.containers"/],
  [cronJob('one', 'ns'), `${CONTAINER}.name`, undefined, /missing required field "[\w.[\]]+\.name"/],
  [cronJob('one', 'ns'), `${CONTAINER}.image`, '', /image: Required value/],
  [cronJob('one', 'ns'), `${CONTAINER}.args`, 'run', /args must be a list/],
  [cronJob('one', 'ns'), `${CONTAINER}.env`, [{ name: 'A', value: 1 }], /env\[0\]\.value must be a string/],
  [cronJob('one', 'ns'), `${CONTAINER}.resources.limits.memory`, '256MB', /Invalid value: "256MB"/],
  [cronJob('one', 'ns'), `${CONTAINER}.volumeMounts`, [{ name: 'x', mountPath: '/x' }], /Not found: "x"/],
  [secret, 'data.key', 'not base64!', /must be base64/],
  [restore, 'spec', undefined, /spec/],
  [restore, 'spec.backup', 'night-1', /Unrecognized key: "backup"/],
  [restore, 'spec.includedNamespaces', 'agent-memory', /spec\.includedNamespaces/],
  [restore, 'spec.namespaceMapping', ['a:b'], /spec\.namespaceMapping/],
  [restore, 'status.phase', 'Done', /status\.phase/],
  [synced, 'status.conditions', [{ type: 'Ready' }], /status\.conditions\.0\.status/],
  [synced, 'apiVersion', 'external-secrets.io/v2', /no schema is known/],
] as const) {
  test(`an API server refuses ${object.kind} with ${path} ${JSON.stringify(value)}`, (t) => {
    t.deepEqual(complaints(object), []);
    t.regex(complaints(altered(object, path, value)).join('\n'), fault);
  });
}

test('the stand-in refuses what the schema refuses, when it is made, written over and patched', async (t) => {
  const api = await ClusterApi.start(t);
  const options = kubernetesOptions.parse({ kubeconfig: api.kubeconfig(tempDir(t)) });
  const cluster = new RemoteKubernetes(options, systemClock);
  t.teardown(() => cluster.close());
  api.store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'velero' } });
  const wrong = { ...restore, spec: { backup: 'night-1' } };
  const refused = { code: 'HF_KUBERNETES_REFUSED', message: /Unrecognized key: "backup"/ };
  await t.throwsAsync(cluster.create(wrong), refused);
  t.deepEqual(api.store.all('Restore'), []);
  await cluster.create(restore);
  await t.throwsAsync(cluster.patch(restore, 'one', 'velero', { spec: { backup: 'night-2' } }), refused);
  t.throws(() => api.store.replace(wrong), { message: /Unrecognized key/ });
  t.deepEqual(api.store.find('Restore', 'one', 'velero')?.spec, restore.spec);
});
