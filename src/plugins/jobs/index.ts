import { z } from 'zod';
import { ClusterToken } from '../../core/contracts/cluster.ts';
import { jobRun } from '../../core/contracts/jobs.ts';
import { type Telemetry, TelemetryToken } from '../../core/contracts/telemetry.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import type { ActorState } from '../../core/kernel/actors/state.ts';
import type { LogEvent, LogRecord } from '../../core/kernel/log/record.ts';
import { type JobContext, job as machine } from '../../machines/jobs/job.ts';
import { isFailing, type JobsAnswer, jobsCommand, jobsView, LIST_PATH } from './view.ts';
import { JOB_ACTOR, JobWatch } from './watch.ts';

/**
 * Jobs (O13, O19): runs of schedules, those of a cluster (`read.ts`, `watch.ts`) and those of this process, which their
 * plugins tell by the topic `jobs.run`. `machines/job.ts` decides why one failed and why it is still there; here it is
 * looked, told and shown (`view.ts`, `command.ts`).
 *
 * Imports core, bus and its machine; no other plugin.
 */

/** @example jobs({ namespaces: ['observability', 'agent-memory'] }) */
export const jobs = definePlugin({
  name: 'jobs',
  about: {
    area: 'Uptime and alerts',
    what: "scheduled runs, ours and the cluster's: why one failed",
    docs: 'jobs.md',
  },
  options: z.strictObject({
    /** Whose Jobs are looked at; those of every namespace when none is listed. */
    namespaces: z
      .array(z.string().regex(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/))
      .max(20)
      .default([]),
    /** Between two looks, milliseconds: closer together than the life of a Job that is killed. */
    everyMs: z.int().min(100).max(120_000).default(10_000),
  }),
  wants: [ClusterToken, TelemetryToken],
  register(context, options) {
    let watch: JobWatch | undefined;
    let endMeasuring = () => {};
    context.actor(defineActor({ type: JOB_ACTOR, machine, version: 1, describe: describeJobRecord }));
    context.route(
      defineRoute(jobRun, JOB_ACTOR, ({ payload: { phase, ...rest }, correlation }) => {
        const type = phase === 'started' ? 'STARTED' : 'ENDED';
        return [{ key: `${rest.job}/${correlation}`, event: { type, ...rest } as LogEvent }];
      }),
    );
    const view = () => jobsView(context.services.actors.list(JOB_ACTOR), context.services.clock.now());
    const answer = (): JobsAnswer => {
      const place = context.services.find(ClusterToken)?.place;
      const { lookedAt, fault } = watch ?? {};
      return {
        jobs: view(),
        ...(place !== undefined && {
          cluster: {
            place,
            ...(lookedAt !== undefined && { lookedAt: new Date(lookedAt).toISOString() }),
            ...(fault !== undefined && { fault }),
          },
        }),
      };
    };
    context.control((surface) => {
      serveOperation(surface, LIST_PATH, z.strictObject({}), answer);
    });
    context.command(jobsCommand);
    context.health('jobs', () => {
      const known = view();
      const failed = known.filter((each) => isFailing(each) && each.state !== 'reaped');
      const { fault } = watch ?? {};
      const reason = fault === undefined ? failureText(failed) : `the cluster cannot be read: ${fault}`;
      return {
        ...(reason !== undefined && { ok: false, reason }),
        active: known.filter(({ state }) => state === 'active').length,
        failed: failed.length,
      };
    });
    context.onStart(() => {
      const { services } = context;
      const { actors, clock, find } = services;
      for (const { ref, value, context: known } of actors.list(JOB_ACTOR)) {
        const { source } = known as unknown as JobContext;
        if (source === 'own' && value === 'active') actors.send(ref, { type: 'ORPHANED', at: clock.now() });
      }
      endMeasuring = measureJobs(find(TelemetryToken), () => actors.list(JOB_ACTOR));
      const cluster = find(ClusterToken);
      if (!cluster) return;
      watch = new JobWatch(services, cluster, options);
      watch.start();
    });
    context.onStop(async () => {
      endMeasuring();
      await watch?.stop();
    });
  },
});

function failureText(
  failed: readonly { run: string; cause?: { text: string }; means?: string }[],
): string | undefined {
  const [first, ...others] = failed;
  if (!first) return undefined;
  const more = others.length === 0 ? '' : `, and ${others.length} more`;
  return `${first.run}: ${first.means ?? first.cause?.text ?? 'failed'}${more}`;
}

/** A run that goes well is routine. */
function describeJobRecord({ event, to }: LogRecord): string | undefined {
  const { cause, name } = (to.context ?? {}) as Partial<JobContext>;
  if (cause) return `${name === undefined ? '' : `${name} `}failed, ${cause.kind}: ${cause.text}`;
  if (event.type === 'GONE') return 'is gone';
  return '';
}

/**
 * Reports our own failed runs as kube-state-metrics reports those of a cluster, for as long as one is there: a run that
 * did not fail has no sample. Those of a cluster are reported by the cluster.
 *
 * @returns ends it
 */
export function measureJobs(
  telemetry: Telemetry | undefined,
  states: () => readonly Readonly<ActorState>[],
): () => void {
  if (!telemetry?.enabled) return () => {};
  const gauge = telemetry.meter('holdfast.jobs').createObservableGauge('kube_job_failed', {
    description: '1 for each scheduled run that failed and is still there.',
  });
  const observe: Parameters<typeof gauge.addCallback>[0] = (result) => {
    for (const { value, context } of states()) {
      const { source, namespace, name } = context as unknown as JobContext;
      if (source !== 'own' || (value !== 'failed' && value !== 'retained')) continue;
      result.observe(1, { namespace, job_name: name, condition: 'true' });
    }
  };
  gauge.addCallback(observe);
  return () => gauge.removeCallback(observe);
}
