import type { Telemetry } from '../../core/contracts/telemetry.ts';
import type { ActorState } from '../../core/kernel/actors/state.ts';
import type { JobContext } from '../../machines/jobs/job-shapes.ts';

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
