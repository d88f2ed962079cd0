/**
 * Jobs (O13, O19): the runs of schedules, those of a cluster (`read.ts`, `watch.ts`) and those of this process, which
 * other plugins publish on the topic `jobs.run`. `machines/jobs/job.ts` decides why one failed and why it is still there;
 * `view.ts` shows them.
 */

import { z } from 'zod';
import { ClusterToken } from '../../core/contracts/cluster.ts';
import { consolePages } from '../../core/contracts/console.ts';
import {
  type FailedRun,
  type JobRepeated,
  type JobRun,
  jobRepeated,
  jobRun,
  type ScheduledRuns,
  ScheduledRunsToken,
} from '../../core/contracts/jobs.ts';
import { KubernetesToken } from '../../core/contracts/kubernetes.ts';
import { type Telemetry, TelemetryToken } from '../../core/contracts/telemetry.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { counted } from '../../core/host/terminal.ts';
import { ownRunName } from '../../machines/jobs/job.ts';
import { jobsPage } from './console-page.ts';
import {
  isFailing,
  type JobsAnswer,
  type JobView,
  jobsCommand,
  jobsView,
  LIST_PATH,
  repeatsView,
} from './view.ts';
import { type JobSnapshot, JobWatch, jobActor } from './watch.ts';

/** A run of another host that has not ended for so long has no process any more, milliseconds. */
const ELSEWHERE_MS = 3_600_000;

/**
 * The plugin `jobs`: scheduled runs, ours and the cluster's: why one failed.
 *
 * @example jobs({ namespaces: ['observability', 'agent-memory'] })
 * @public
 */
export const jobs = definePlugin({
  name: 'jobs',
  about: {
    area: 'Uptime and alerts',
    what: "scheduled runs, ours and the cluster's: why one failed",
    docs: 'jobs.md',
  },
  options: z.strictObject({
    /** Namespaces whose Jobs are read; every namespace when none is listed. */
    namespaces: z
      .array(z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/))
      .max(20)
      .default([]),
    /** Milliseconds between two readings: shorter than the life of a Job that is killed. */
    everyMs: z.int().min(100).max(120_000).default(10_000),
    /** CronJobs and jobs of this process that send a heartbeat only when the stack is healthy. */
    heartbeatJobs: z.array(z.string().min(1).max(253)).max(20).default(['clickstack-watchdog']),
  }),
  wants: [KubernetesToken, TelemetryToken, ClusterToken],
  provides: [ScheduledRunsToken],
  // The rules over failed runs read them, so they are where those are.
  singleton: 'alerts',
  start(services, options) {
    const { actors, clock, find } = services;
    const open = actors
      .list(jobActor)
      .filter(({ value, context }) => context.source === 'own' && value === 'active');
    const orphan = () => {
      for (const { key } of open) {
        if (actors.get(jobActor, key)?.value === 'active')
          actors.send(jobActor, key, { type: 'ORPHANED', at: clock.now() });
      }
    };
    // Of several hosts another one may still run it.
    const endOrphaning = find(ClusterToken) ? clock.after(ELSEWHERE_MS, orphan) : orphan();
    const runs = () => actors.list(jobActor);
    const cluster = find(KubernetesToken);
    const watch = cluster && new JobWatch(services, cluster, options);
    watch?.start();
    /** The newest run of each job that is not recorded. */
    const repeats = new Map<string, JobRepeated>();
    services.bus.subscribe(jobRepeated, 'jobs', ({ payload }) => {
      if (payload.phase === 'recorded') repeats.delete(payload.job);
      else repeats.set(payload.job, payload);
    });
    const endMeasuring = measureJobs(find(TelemetryToken), runs);
    return {
      runs,
      view: () => [
        ...repeatsView([...repeats.values()], clock.now()),
        ...jobsView(runs(), clock.now(), options.heartbeatJobs),
      ],
      cluster,
      watch,
      end: () => {
        endOrphaning?.();
        endMeasuring();
        services.bus.release('jobs');
      },
    };
  },
  register(context) {
    context.actor(jobActor);
    context.provide(
      ScheduledRunsToken,
      ({ view, cluster, watch }): ScheduledRuns => ({
        failed: () => view().filter(isFailing).map(failedRun),
        known: () => view().map(({ run }) => run),
        fault() {
          if (!cluster || (watch?.readAt !== undefined && watch.fault === undefined)) return undefined;
          return `the Jobs of the cluster cannot be read: ${watch?.fault ?? 'they have not been read yet'}`;
        },
      }),
    );
    context.route(jobRun, jobActor, ({ payload, correlation }, { runs }) => {
      const key = `${payload.job}/${correlation}`;
      const nth = numberInMinute(payload, key, runs());
      if (payload.phase === 'started') {
        return [{ key, event: { type: 'STARTED', job: payload.job, at: payload.at, ...nth } }];
      }
      const { phase: _, ...end } = payload;
      return [{ key, event: { type: 'ENDED', ...end, ...nth } }];
    });
    context.control((surface, { view, cluster, watch }) => {
      serveOperation(
        surface,
        LIST_PATH,
        z.strictObject({}),
        (): JobsAnswer => ({
          jobs: view(),
          ...(cluster && {
            cluster: {
              place: cluster.place,
              ...(watch?.readAt !== undefined && { lookedAt: new Date(watch.readAt).toISOString() }),
              ...(watch?.fault !== undefined && { fault: watch.fault }),
            },
          }),
        }),
      );
    });
    context.command(jobsCommand);
    context.contribute(consolePages, jobsPage);
    context.health('jobs', ({ view, watch }) => {
      const runs = view();
      const failed = runs.filter((each) => isFailing(each) && each.state !== 'reaped');
      const fault = watch?.fault;
      const reason = fault === undefined ? failureText(failed) : `the cluster cannot be read: ${fault}`;
      const active = runs.filter(({ state }) => state === 'active').length;
      const none =
        runs.length === 0
          ? 'no run was seen yet'
          : `no job is failing; ${counted(runs.length, 'run is', 'runs are')} known`;
      return {
        text: [reason ?? none, ...(active > 0 ? [`${counted(active, 'run')} under way`] : [])].join('; '),
        ...(reason !== undefined && { ok: false, reason }),
        active,
        failed: failed.length,
      };
    });
    context.onStop(async ({ watch, end }) => {
      end();
      await watch?.stop();
    });
  },
});

/** Which of the runs of its minute this is, if it is not the first; one that has a name keeps it. */
function numberInMinute({ job, at }: JobRun, key: string, runs: readonly JobSnapshot[]): { nth?: number } {
  const first = ownRunName(job, at);
  const taken = new Set(runs.filter((run) => run.key !== key).map(({ context }) => context.name));
  if (!taken.has(first)) return {};
  let nth = 2;
  while (taken.has(`${first}-${nth}`)) nth += 1;
  return { nth };
}

/** A failed run, as it is published to other plugins. */
function failedRun({ run, namespace, means, cause }: JobView): FailedRun {
  const reasons = [means, cause && `${cause.kind}: ${cause.text}`].filter((each) => each !== undefined);
  return { run, namespace, text: reasons.join('; ') };
}

function failureText(
  failed: readonly { run: string; cause?: { text: string }; means?: string }[],
): string | undefined {
  const [first, ...others] = failed;
  if (!first) return undefined;
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  return `${first.run}: ${first.means ?? first.cause?.text ?? 'failed'}${more}`;
}

/**
 * Reports the failed runs of this process in the way in which kube-state-metrics reports those of a cluster: a sample for
 * each that is still there. The Jobs of a cluster are reported by the cluster.
 *
 * @returns ends the reporting
 */
function measureJobs(telemetry: Telemetry | undefined, runs: () => readonly JobSnapshot[]): () => void {
  if (!telemetry?.enabled) return () => {};
  const gauge = telemetry.meter('holdfast.jobs').createObservableGauge('kube_job_failed', {
    description: '1 for each scheduled run that failed and is still there.',
  });
  const observe: Parameters<typeof gauge.addCallback>[0] = (result) => {
    for (const { value, context } of runs()) {
      const { source, namespace, name } = context;
      if (source !== 'own' || (value !== 'failed' && value !== 'retained')) continue;
      result.observe(1, { namespace, job_name: name, condition: 'true' });
    }
  };
  gauge.addCallback(observe);
  return () => gauge.removeCallback(observe);
}
