import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import test from 'ava';
import { postControl } from '../../../src/core/host/operations/control-client.ts';
import { kubernetes } from '../../../src/plugins/kubernetes/index.ts';
import type { ListAnswer, StatusAnswer } from '../../../src/plugins/memory/backups/answers.ts';
import { statusLines } from '../../../src/plugins/memory/backups/output.ts';
import { storeObjects } from '../../../src/plugins/restore/scratch/cluster.ts';
import { ClusterApi, Refusal, type Thing } from '../../support/kubernetes/index.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { backup, left, restores, runsStore } from './cluster-rig.ts';
import { FieldStore } from './field-store.ts';
import { startDrills } from './rig.ts';

/** A cluster with the live store in it, whose pods of other namespaces are all one scratch instance. */
async function rig(t: Scope, readyMs?: number, options: Parameters<typeof startDrills>[1] = {}) {
  const [api, live, scratch] = await Promise.all([
    ClusterApi.start(t),
    FieldStore.start(t),
    FieldStore.start(t),
  ]);
  live.fill(12);
  live.snapshot();
  runsStore(api, scratch, readyMs);
  const drills = await startDrills(t, {
    memory: { url: live.url },
    restore: { readyMs: 1_000 },
    ...options,
    plugins: [kubernetes({ kubeconfig: api.kubeconfig(tempDir(t)) })],
  });
  return { api, live, scratch, drills };
}

test('[B2,B9] path a makes a namespace with an encrypted claim and one replica of the live image, and deletes it', async (t) => {
  const { api, drills } = await rig(t);
  const made: Thing[] = [];
  for (const kind of ['Namespace', 'PersistentVolumeClaim', 'Deployment']) {
    api.store.on('created', kind, (object) => made.push(object));
  }
  const result = await drills.drill('a');
  t.is(result.outcome, 'completed', result.failure?.reason);
  const [namespace, claim, deployment] = made;
  t.regex(namespace!.metadata.annotations['holdfast.dev/expires'], /^20/);
  t.like(claim!.spec, {
    storageClassName: 'encrypted-replicated',
    resources: { requests: { storage: '5Gi' } },
  });
  t.like(deployment!.spec, { replicas: 1, strategy: { type: 'Recreate' } });
  const [container] = deployment!.spec.template.spec.containers;
  t.is(container.image, 'registry.example/qdrant:v1.19.0');
  t.is(container.volumeMounts[0].mountPath, '/qdrant/storage');
  t.is(container.env, undefined, 'no object-store settings');
  t.deepEqual(left(api), []);
});

test('[B9] a snapshot that the claim has no room for is refused before anything is made', async (t) => {
  const { api, live, drills } = await rig(t);
  live.toldSize = 3 * 1024 ** 3;
  const { failure } = await drills.drill('a');
  t.like(failure, { phase: 'choosing', code: 'HF_RESTORE_SPACE' });
  t.false(api.calls.some((call) => call.startsWith('POST')));
});

test('[B9] an instance that is not ready in time, or whose image cannot be had, ends the drill, and its namespace goes', async (t) => {
  const { api, drills } = await rig(t, Number.POSITIVE_INFINITY);
  const late = await drills.drill('a');
  t.regex(late.failure!.reason, /no pod of namespace holdfast-drill-\S+ is ready after 1 s/);
  api.store.on('created', 'Pod', ({ metadata: { name, namespace } }) => {
    const state = { waiting: { reason: 'ImagePullBackOff' } };
    const waiting = { name: 'store', image: 'qdrant', imageID: '', ready: false, restartCount: 0, state };
    api.store.set('Pod', name, namespace, { status: { containerStatuses: [waiting] } });
  });
  const unpulled = await drills.drill('a');
  t.regex(unpulled.failure!.reason, /ImagePullBackOff/);
  t.deepEqual(left(api), []);
});

test('[B9] an instance is given 120 s to be ready', async (t) => {
  const clock = new VirtualClock();
  const restore = { readyMs: undefined, pollMs: 10_000 };
  const { drills } = await rig(t, Number.POSITIVE_INFINITY, { clock, restore });
  const began = clock.now();
  await drills.ask('a');
  const ended = drills.see(({ results }) => results.length > 0);
  let over = false;
  void ended.then(() => (over = true));
  while (!over) {
    await clock.advance(1_000);
    await delay(5);
  }
  const [result] = (await ended).results;
  t.regex(result!.failure!.reason, /is ready after 120 s/);
  t.true(clock.now() - began >= 110_000);
});

const GOING = ['InProgress', 'WaitingForPluginOperations', 'Finalizing'].map((phase) => ({ phase }));

test('[B3] path b restores the newest good backup through every phase, and deletes namespace and restore', async (t) => {
  const { api, live, scratch, drills } = await rig(t);
  const nothing = await drills.drill('b');
  t.is(nothing.failure?.code, 'HF_RESTORE_NOTHING');
  api.store.create(backup('old', '2026-11-18T04:00:00Z', { phase: 'Completed' }));
  api.store.create(backup('good', '2026-11-19T04:00:00Z', { phase: 'Completed', errors: 0, warnings: 0 }));
  api.store.create(backup('warned', '2026-11-20T04:00:00Z', { phase: 'Completed', warnings: 1 }));
  api.store.create(backup('partial', '2026-11-21T04:00:00Z', { phase: 'PartiallyFailed', errors: 1 }));
  const seen = restores(api, live, scratch, [...GOING, { phase: 'Completed' }]);
  const secrets: Thing[] = [];
  api.store.on('created', 'Secret', (object) => secrets.push(object));
  const result = await drills.drill('b');
  t.is(result.outcome, 'completed', result.failure?.reason);
  t.like(result, { source: { kind: 'backup', name: 'good' }, report: { restored: { count: 12 } } });
  const name = seen[0]!.metadata.name;
  t.deepEqual(seen[0]!.spec, {
    backupName: 'good',
    includedNamespaces: ['agent-memory'],
    includedResources: ['persistentvolumeclaims', 'persistentvolumes', 'deployments', 'services'],
    namespaceMapping: { 'agent-memory': name },
  });
  t.like(secrets[0], {
    metadata: { name: 'qdrant-r2-snapshot', namespace: name },
    stringData: { access_key: 'placeholder', secret_key: 'placeholder' },
  });
  t.deepEqual(left(api), []);
  t.deepEqual(api.store.all('Restore'), []);
  t.regex((await drills.drill('b', 'partial')).failure!.reason, /partial: PartiallyFailed with 1 errors/);
});

test('[B3,B4] a backup of the cluster is recorded when it is first seen, and a drill compares with that', async (t) => {
  const { api, live, scratch, drills } = await rig(t);
  api.store.create(backup('night-1', '2026-11-18T04:00:00Z', { phase: 'Completed' }));
  api.store.create(backup('failed', '2026-11-19T04:00:00Z', { phase: 'Failed' }));
  await drills.records.recordSeen(AbortSignal.timeout(30_000));
  const record = drills.records.of('night-1');
  t.like(record, { at: Date.parse('2026-11-18T04:00:00Z'), content: { count: 12 } });
  t.true(record!.seenAt! > record!.at);
  t.is(drills.records.of('failed'), undefined, 'only good ones');
  const listed = async () => {
    const { body } = await postControl(
      drills.dataDir,
      '/memory/backup/list',
      {},
      AbortSignal.timeout(30_000),
    );
    return (body as ListAnswer).backups.filter(({ kind }) => kind === 'volume');
  };
  t.like(await listed(), [{ name: 'night-1', recorded: true, count: 12 }]);
  const status = async () => {
    const signal = AbortSignal.timeout(30_000);
    const { body } = await postControl(drills.dataDir, '/memory/backup/status', {}, signal);
    return body as StatusAnswer;
  };
  const seen = await status();
  t.like(seen.clusterVolume, {
    newest: { name: 'night-1', at: '2026-11-18T04:00:00.000Z' },
    recorded: 1,
    findings: [],
  });
  t.regex(
    statusLines(seen).join('\n'),
    /^volume {4}night-1, 2026-11-18T04:00:00Z, 1 recorded\n +made by agent-memory-pvc-backup of the cluster/m,
  );
  restores(api, live, scratch, [{ phase: 'Completed' }]);
  const well = await drills.drill('b');
  t.is(well.outcome, 'completed', well.report?.verdict);
  t.like(well.report, { expected: { by: 'seen' }, file: { state: 'unknown' }, points: { same: 12 } });
  t.regex(well.report!.verdict, /the bytes of its file are unknown: .*keeps it in an object store/);

  // The stand-in restores what the live store holds by now, which is not what was recorded.
  const { points } = live.collections.get('memory')!;
  points.set(3, { id: 3, vector: [9, 9, 9], payload: { text: 'damaged' } });
  const differing = await drills.drill('b');
  t.is(differing.outcome, 'failed');
  t.regex(differing.report!.verdict, /^point 3 is not as recorded when it was first seen/);

  api.mishap = ({ path }) => (path.includes('velero') ? new Refusal(403, 'Forbidden', 'no') : undefined);
  await t.notThrowsAsync(drills.records.recordSeen(AbortSignal.timeout(30_000)));
  t.truthy(drills.records.of('night-1'), 'what cannot be seen is not gone');
  api.mishap = () => undefined;
  api.pages.endless = /backups/;
  api.store.delete('Backup', 'night-1', 'velero');
  await drills.records.recordSeen(AbortSignal.timeout(30_000));
  t.truthy(drills.records.of('night-1'), 'what a partial list leaves out is not gone');
  api.pages.endless = undefined;
  await drills.records.recordSeen(AbortSignal.timeout(30_000));
  t.is(drills.records.of('night-1'), undefined);
  t.deepEqual(await listed(), []);
  t.regex(statusLines(await status()).join('\n'), /^volume {4}unknown: none was seen yet$/m);

  const day = 24 * 3_600_000;
  for (const [name, from] of [
    ['ahead', day],
    ['late', -3 * day],
  ] as const) {
    api.store.create(backup(name, new Date(Date.now() + from).toISOString(), { phase: 'Completed' }));
  }
  await drills.records.recordSeen(AbortSignal.timeout(30_000));
  t.like((await status()).clusterVolume, { newest: { name: 'late' }, recorded: 2, stale: true });
  t.regex(statusLines(await status()).join('\n'), /; stale; dated in the future: ahead$/m);
});

test('[B3] the newest of a partial list of backups is not taken for the newest', async (t) => {
  const { api, live, scratch, drills } = await rig(t);
  api.store.create(backup('good', '2026-11-19T04:00:00Z', { phase: 'Completed' }));
  restores(api, live, scratch, [{ phase: 'Completed' }]);
  api.pages.endless = /backups/;
  const { failure } = await drills.drill('b');
  t.is(failure?.code, 'HF_RESTORE_NOTHING');
  t.regex(failure!.reason, /more backups than the 1 that could be read, so the newest is unknown/);
  t.like(await drills.drill('b', 'good'), { outcome: 'completed', source: { name: 'good' } });
  t.regex((await drills.drill('b', 'other')).failure!.reason, /among the 1 that could be read/);
});

test('[B3] any other end of a restore than Completed without errors and warnings is not good', async (t) => {
  const { api, live, scratch, drills } = await rig(t);
  api.store.create(backup('good', '2026-11-19T04:00:00Z', { phase: 'Completed' }));
  const ends = [
    { phase: 'FinalizingPartiallyFailed' },
    { phase: 'WaitingForPluginOperationsPartiallyFailed' },
    { phase: 'PartiallyFailed', errors: 2 },
    { phase: 'Failed', failureReason: 'the object store is away' },
    { phase: 'FailedValidation', validationErrors: ['no such backup'] },
    { phase: 'Completed', warnings: 1 },
  ];
  const phases: object[] = [];
  restores(api, live, scratch, phases);
  for (const end of ends) {
    phases.splice(0, phases.length, { phase: 'InProgress' }, end);
    const { outcome, failure } = await drills.drill('b');
    t.is(outcome, 'failed');
    t.regex(failure!.reason, new RegExp(`ends ${end.phase} with`));
    t.deepEqual(left(api), []);
    t.deepEqual(api.store.all('Restore'), []);
  }
});

test('[B5] a namespace of that name that somebody else made is neither used nor removed', async (t) => {
  const { api, drills } = await rig(t);
  let taken = '';
  api.mishap = ({ method, path }) => {
    if (method !== 'POST' || path !== '/api/v1/namespaces' || taken !== '') return undefined;
    taken = `holdfast-drill-${(drills.runtime.services.actors.snapshot('restore.drill/store' as never) as any).context.drill.id}`;
    api.store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: taken } });
    return undefined;
  };
  const { failure } = await drills.drill('a');
  t.regex(failure!.reason, /belongs to somebody else/);
  t.truthy(api.store.find('Namespace', taken));
});

test('[B9] kubectl reads what is made in a cluster as it is meant, without a field that it does not know', async (t) => {
  const dir = tempDir(t);
  const [, deployment] = storeObjects('store:1', 'encrypted-replicated');
  const file = join(dir, 'deployment.json');
  writeFileSync(file, JSON.stringify(deployment));
  // It decodes into its own types and writes them again: an unknown field would be gone, another type an error.
  const args = ['set', 'image', '--local', '-f', file, 'store=store:2', '-o', 'json'];
  const { stdout } = await promisify(execFile)('kubectl', args, {
    timeout: 20_000,
    env: { ...process.env, HOME: dir },
  });
  const wanted = JSON.parse(JSON.stringify(deployment).replace('store:1', 'store:2'));
  t.like(JSON.parse(stdout), wanted);
});
