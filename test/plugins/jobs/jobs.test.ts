import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import test from 'ava';
import { z } from 'zod';
import { jobRun } from '../../../src/core/contracts/jobs.ts';
import { type Telemetry, TelemetryToken } from '../../../src/core/contracts/telemetry.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { clearsAfter } from '../../../src/machines/jobs/failure.ts';
import { documentedRules } from '../../../src/plugins/alerts/rules/documented.ts';
import { queryOf } from '../../../src/plugins/alerts/rules/evaluate.ts';
import { ruleOptions } from '../../../src/plugins/alerts/rules/rule.ts';
import { jobs } from '../../../src/plugins/jobs/index.ts';
import { jobsView } from '../../../src/plugins/jobs/view.ts';
import { jobActor } from '../../../src/plugins/jobs/watch.ts';
import { kubernetes } from '../../../src/plugins/kubernetes/index.ts';
import { call, writeConfig } from '../../support/cli.ts';
import { ClusterApi, Refusal } from '../../support/kubernetes/index.ts';
import { beginJob, cronJob, endJob, type Fate, makeJob } from '../../support/kubernetes/jobs.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';

const IMPORT = `import { jobs } from 'holdfast/plugins/jobs';`;
const NAMESPACE = 'observability';

async function until(what: () => boolean): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!what()) {
    if (performance.now() > end) throw new Error(`it never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

interface Rig {
  readonly kubeconfig?: string;
  readonly telemetry?: Telemetry;
  readonly heartbeatJobs?: string[];
}

async function rig(t: Scope, { kubeconfig, telemetry, heartbeatJobs = ['clickstack-watchdog'] }: Rig = {}) {
  const provider = definePlugin({
    name: 'meters',
    options: z.strictObject({}),
    provides: [TelemetryToken],
    register: (context) => context.provide(TelemetryToken, () => telemetry as Telemetry),
  });
  const entries = [
    jobs({ everyMs: 100, heartbeatJobs }),
    ...(kubeconfig === undefined ? [] : [kubernetes({ kubeconfig })]),
    ...(telemetry ? [provider()] : []),
  ];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const dataDir = tempDir(t);
  const runtime = createRuntime({ plugins, dataDir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const { actors, clock } = runtime.services;
  const view = () => jobsView(actors.list(jobActor), clock.now(), heartbeatJobs);
  const find = (run: string) => view().find((each) => each.run === run);
  return { runtime, dataDir, view, find };
}

async function stack(t: Scope) {
  const api = await ClusterApi.start(t);
  api.store.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } });
  const owner = api.store.create(cronJob('clickstack-watchdog', NAMESPACE));
  return { api, owner, kubeconfig: api.kubeconfig(tempDir(t)) };
}

const FATES: readonly Fate[] = ['exit 1', 'memory', 'deadline', 'image', 'eviction', 'success'];
const nameOf = (fate: Fate) => `clickstack-watchdog-${fate.replace(' ', '')}`;

test('[O13,O19] the five ways to die of a cluster are told apart by holdfast jobs, and kubectl reads the same Jobs', async (t) => {
  const { api, owner, kubeconfig } = await stack(t);
  const made = FATES.map((fate) => [fate, makeJob(api, owner, nameOf(fate))] as const);
  for (const [fate, job] of made) beginJob(api, job, fate);
  const { find, dataDir } = await rig(t, { kubeconfig });
  await until(() => FATES.every((fate) => find(nameOf(fate))?.state === 'active'));
  for (const [fate, job] of made)
    endJob(api, job, fate, 'PUSH DELIVERY FAILED: HTTP 404 (wget exit status 8)');
  await until(() => FATES.every((fate) => find(nameOf(fate))?.state !== 'active'));

  t.deepEqual(
    FATES.map((fate) => find(nameOf(fate))?.cause?.kind),
    ['exit', 'oom', 'deadline', 'image', 'eviction', undefined],
  );
  t.regex(find(nameOf('exit 1'))?.means ?? '', /^push delivery failed: the stack was healthy/);
  for (const fate of ['memory', 'deadline', 'image', 'eviction'] as const)
    t.regex(find(nameOf(fate))?.means ?? '', /^killed, which is no failed delivery/);
  t.regex(find(nameOf('success'))?.means ?? '', /only the heartbeat says/);

  const config = writeConfig(dataDir, 'export default defineConfig({ plugins: [jobs()] });', [IMPORT]);
  const shown = await call(['jobs', '--data-dir', dataDir, '--config', config], { cwd: dataDir });
  t.is(shown.code, 1, shown.err);
  t.regex(
    shown.out,
    /watchdog-image +failed at .*\n +why +image: its image could not be pulled \(ImagePullBackOff\)/,
  );
  t.regex(
    shown.out,
    /here +its TTL of 300 s takes it away at 20.*\n +alert +until .*:00:00Z, after a whole hour/,
  );
  const json = await call(['jobs', '--json', '--data-dir', dataDir, '--config', config], { cwd: dataDir });
  t.is(JSON.parse(json.out).jobs.length, FATES.length);

  const env = { ...process.env, HOME: dataDir, KUBECONFIG: kubeconfig };
  const kubectl = async (...args: string[]) =>
    (await promisify(execFile)('kubectl', ['-n', NAMESPACE, ...args], { env, timeout: 20_000 })).stdout;
  t.regex(await kubectl('get', 'cronjobs'), /clickstack-watchdog/);
  const reasons = '{range .items[*]}{.metadata.name}={.status.conditions[0].reason} {end}';
  const listed = await kubectl('get', 'jobs', '-o', `jsonpath=${reasons}`);
  t.regex(
    listed,
    /watchdog-image=DeadlineExceeded .*watchdog-memory=BackoffLimitExceeded|memory=BackoffLimitExceeded .*image=Dead/,
  );
  await kubectl('delete', 'job', nameOf('image'), '--timeout=10s');
  await until(() => find(nameOf('image'))?.state === 'reaped');
  t.regex(find(nameOf('image'))?.alertClears?.at ?? '', /:00:00.000Z$/);
});

test('[O19] a Job that is older than its TTL says what keeps it, and a cluster that cannot be read is said', async (t) => {
  const { api, owner, kubeconfig } = await stack(t);
  const old = makeJob(api, owner, 'clickstack-watchdog-old', 'none');
  beginJob(api, old, 'exit 1');
  endJob(api, old, 'exit 1');
  const { find, runtime, dataDir } = await rig(t, { kubeconfig });
  await until(() => find('clickstack-watchdog-old') !== undefined);
  t.like(find('clickstack-watchdog-old'), {
    state: 'retained',
    kept: { why: 'older-than-ttl' },
    alertClears: { ifGoneNow: true },
  });
  t.regex(String((runtime.health().jobs as any).reason), /^clickstack-watchdog-old: push delivery failed/);

  api.mishap = () => new Refusal(403, 'Forbidden', 'jobs.batch is forbidden');
  await until(() => String((runtime.health().jobs as any).reason).includes('cannot be read'));
  t.is(find('clickstack-watchdog-old')?.state, 'retained', 'what cannot be seen is not gone');
  api.mishap = () => undefined;
  for (const list of [/jobs/, /cronjobs/, /pods/]) {
    api.pages.endless = list;
    await until(() => String((runtime.health().jobs as any).reason).includes('more Jobs, CronJobs or pods'));
    api.pages.endless = undefined;
    await until(() => !String((runtime.health().jobs as any).reason).includes('cannot be read'));
  }
  api.mishap = () => new Refusal(403, 'Forbidden', 'jobs.batch is forbidden');
  await until(() => String((runtime.health().jobs as any).reason).includes('forbidden'));
  const config = writeConfig(dataDir, 'export default defineConfig({ plugins: [jobs()] });', [IMPORT]);
  const shown = await call(['jobs', '--data-dir', dataDir, '--config', config], { cwd: dataDir });
  t.regex(shown.out, /The cluster cannot be read, so its Jobs are as of 20.*forbidden/);
});

test('[O13,O19] our own runs have the same states, and only those that failed are counted as kube_job_failed', async (t) => {
  const samples: [number, object][] = [];
  let callback: (result: object) => void = () => {};
  const gauge = {
    addCallback(given: typeof callback) {
      callback = given;
    },
    removeCallback: () => {},
  };
  const meter = { createObservableGauge: (name: string) => (name === 'kube_job_failed' ? gauge : undefined) };
  const { runtime, find, view } = await rig(t, { telemetry: { enabled: true, meter: () => meter } as never });
  const collect = () => {
    samples.length = 0;
    callback({ observe: (value: number, attributes: object) => samples.push([value, attributes]) });
    return samples;
  };
  const { bus } = runtime.services;
  const at = 29_384_123 * 60_000;
  const tell = (correlation: string, run: object) =>
    bus.publish(jobRun, { at, ...run } as never, { correlation });
  tell('one', { phase: 'started', job: 'clickstack-watchdog' });
  t.is(find('clickstack-watchdog-29384123')?.state, 'active');
  t.deepEqual(collect(), []);
  const text = 'PUSH DELIVERY FAILED: nothing listens there (wget exit status 4)';
  tell('one', { phase: 'ended', job: 'clickstack-watchdog', outcome: 'failed', cause: 'exit', text });
  tell('two', { phase: 'ended', job: 'memory-snapshot', outcome: 'succeeded' });
  t.deepEqual(collect(), [
    [1, { namespace: 'holdfast', job_name: 'clickstack-watchdog-29384123', condition: 'true' }],
  ]);
  t.deepEqual(
    view().map(({ job, state, means }) => [job, state, means]),
    [
      [
        'clickstack-watchdog',
        'failed',
        'push delivery failed: the stack was healthy, and its heartbeat did not arrive',
      ],
      ['memory-snapshot', 'succeeded', undefined],
    ],
  );
});

test('[O19] runs of one minute have names of their own, which each of them keeps', async (t) => {
  const { runtime, view } = await rig(t, {});
  const at = 29_384_123 * 60_000;
  const publish = (correlation: string, phase: 'started' | 'ended', later = 0) =>
    runtime.services.bus.publish(
      jobRun,
      { phase, job: 'watchdog', at: at + later, ...(phase === 'ended' && { outcome: 'failed' }) } as any,
      { correlation },
    );
  const names = () =>
    view()
      .map(({ run }) => run)
      .sort();
  publish('one', 'started');
  publish('two', 'started', 1_000);
  publish('one', 'ended', 2_000);
  publish('three', 'ended', 59_999);
  const all = ['watchdog-29384123', 'watchdog-29384123-2', 'watchdog-29384123-3'];
  t.deepEqual(names(), all);
  publish('two', 'ended', 3_000);
  publish('one', 'started', 4_000);
  t.deepEqual(names(), all, 'a run that is taken up again is the same one');
  publish('next', 'started', 60_000);
  t.deepEqual(names(), [...all, 'watchdog-29384124']);
});

test('[O13] the end of a run says something about the stack for the declared jobs only', async (t) => {
  const { runtime, view } = await rig(t, { heartbeatJobs: ['stack-check'] });
  const end = { phase: 'ended', at: 60_000, outcome: 'failed', cause: 'exit' } as const;
  const reason = () => (runtime.health().jobs as { readonly reason: string }).reason;
  runtime.services.bus.publish(jobRun, { ...end, job: 'stack-check' });
  const healthy = 'push delivery failed: the stack was healthy, and its heartbeat did not arrive';
  t.is(reason(), `stack-check-1: ${healthy}`);
  runtime.services.bus.publish(jobRun, { ...end, job: 'gpu-watchdog' });
  t.deepEqual(
    view().map(({ job, means }) => [job, means]),
    [
      ['gpu-watchdog', undefined],
      ['stack-check', healthy],
    ],
  );
});

test('[O19] the rule over failed jobs looks at whole hours, so its alert ends when holdfast jobs says', (t) => {
  const rule = ruleOptions.parse(documentedRules.find(({ name }) => name === 'watchdog-push-failing'));
  const sample = Date.UTC(2026, 0, 1, 10, 20);
  const schema = { attribute: (column: string, key: string) => `${column}[${key}]` };
  const isSeen = (now: number) => Number(queryOf(rule, now, schema).parameters.from) * 1_000 < sample;
  t.true(isSeen(clearsAfter(sample) - 1));
  t.false(isSeen(clearsAfter(sample)));
  t.is(new Date(clearsAfter(sample)).toISOString(), '2026-01-01T12:00:00.000Z');
  t.regex(queryOf(rule, sample, schema).sql, /startsWith\(Attributes/);
});
