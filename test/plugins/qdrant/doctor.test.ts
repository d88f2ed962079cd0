import { readFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';
import { memoryChecks } from '../../../src/plugins/qdrant/doctor/checks.ts';
import { lastGoodBackup, missingSettings } from '../../../src/plugins/qdrant/doctor/deployment.ts';

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
  t.is(lastGoodBackup(all), Date.parse(good));
  t.is(lastGoodBackup([]), undefined);
});

test('[B7] doctor memory says what is wrong with backups and deployment, and what to do', async (t) => {
  const look = async (memory?: object) => {
    const running = memory && { surfaces: {}, facts: { memory } };
    const context = { dataDir: '/nowhere', signal: AbortSignal.timeout(1_000), ...(running && { running }) };
    return Promise.all(memoryChecks.map((check) => check.run(context)));
  };
  t.deepEqual(
    (await look()).map(({ state }) => state),
    ['warn', 'warn'],
  );
  t.deepEqual(
    (await look({ snapshot: { stale: false }, seeds: 16 })).map(({ state }) => state),
    ['ok', 'ok'],
  );
  const [backups, store] = await look({
    snapshot: { stale: true },
    seeds: 16,
    deployment: ['it lacks BUCKET'],
  });
  t.like(backups, { state: 'fail', found: 'no good snapshot for too long' });
  t.like(store, { state: 'fail', found: 'it lacks BUCKET' });
  t.is((await look({ snapshot: { stale: false }, seeds: 0 }))[0]?.state, 'warn');
});

test('[B11] the CronJob runs as 65532 from a pinned image, installs nothing, and is never suspended', (t) => {
  const text = readFileSync(new URL('../../../deploy/memory-snapshot.yaml', import.meta.url), 'utf8');
  const job = parse(text);
  t.like(job, { apiVersion: 'batch/v1', kind: 'CronJob' });
  t.is(job.spec.schedule, '30 2 * * *');
  t.false('suspend' in job.spec);
  const pod = job.spec.jobTemplate.spec.template.spec;
  t.like(pod.securityContext, { runAsNonRoot: true, runAsUser: 65_532 });
  t.is(pod.containers.length, 1);
  const [container] = pod.containers;
  t.regex(container.image, /:[0-9a-f]{7,12}$/);
  t.notRegex(container.args.join('\n'), /\b(apt|apk|npm|pip|curl|wget)\b/);
  t.regex(text, /kubectl .*create job --from=cronjob\/memory-snapshot/);
  t.true(container.securityContext.readOnlyRootFilesystem);
});
