import { podOf } from './behaviours.ts';
import type { ClusterApi } from './index.ts';
import type { Thing } from './store.ts';

/** How a Job ends: well, or in one of the five ways to die. */
export type Fate = 'success' | 'exit 1' | 'memory' | 'deadline' | 'image' | 'eviction';

const now = () => new Date().toISOString().replace(/\.\d+/, '');

/** A CronJob as the watchdog's is. */
export function cronJob(name: string, namespace: string, ttl = 300): Thing {
  return {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name, namespace },
    spec: {
      schedule: '*/5 * * * *',
      failedJobsHistoryLimit: 1,
      jobTemplate: { spec: { ...spec, ttlSecondsAfterFinished: ttl } },
    },
  };
}

const spec = {
  backoffLimit: 0,
  activeDeadlineSeconds: 120,
  template: {
    metadata: {},
    spec: {
      restartPolicy: 'Never',
      containers: [{ name: 'main', image: 'watchdog:1', resources: { limits: { memory: '256Mi' } } }],
    },
  },
};

/** Its controller makes a Job of a CronJob. @param ttl seconds; `none` for one made before there was a TTL */
export function makeJob(
  { store }: ClusterApi,
  owner: Thing,
  name: string,
  ttl: number | 'none' = 300,
): Thing {
  const { apiVersion, kind, metadata } = owner;
  const reference = { apiVersion, kind, name: metadata.name, uid: metadata.uid, controller: true };
  return store.create({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: metadata.namespace!, ownerReferences: [reference] },
    spec: { ...spec, ...(ttl !== 'none' && { ttlSecondsAfterFinished: ttl }) },
  });
}

/** Its pod is made and comes as far as its fate lets it. */
export function beginJob({ store }: ClusterApi, job: Thing, fate: Fate): void {
  const { name, namespace } = job.metadata;
  const pod = store.create(podOf(job, `${name}-x2x9q`));
  store.set('Job', name, namespace, { status: { startTime: now(), active: 1 } });
  const state =
    fate === 'image'
      ? { waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image "watchdog:1"' } }
      : { running: { startedAt: now() } };
  const phase = fate === 'image' ? 'Pending' : 'Running';
  store.set('Pod', pod.metadata.name, namespace, {
    status: { phase, containerStatuses: [container(state)] },
  });
}

/** It ends as a real cluster ends it: what a deadline ends loses its pod at once. */
export function endJob({ store }: ClusterApi, job: Thing, fate: Fate, output?: string): void {
  const { name, namespace } = job.metadata;
  const pod = `${name}-x2x9q`;
  const end = (terminated: object, status: object = {}) =>
    store.set('Pod', pod, namespace, {
      status: {
        phase: 'Failed',
        containerStatuses: [container({ terminated: { finishedAt: now(), ...terminated } })],
        ...status,
      },
    });
  switch (fate) {
    case 'success':
      end({ exitCode: 0, reason: 'Completed' }, { phase: 'Succeeded' });
      break;
    case 'exit 1':
      end({ exitCode: 1, reason: 'Error', ...(output !== undefined && { message: output }) });
      break;
    case 'memory':
      end({ exitCode: 137, reason: 'OOMKilled' });
      break;
    case 'eviction':
      end(
        { exitCode: 137, reason: 'Error' },
        { reason: 'Evicted', message: 'The node was low on resource: memory.' },
      );
      break;
    case 'deadline':
    case 'image':
      store.delete('Pod', pod, namespace);
      break;
  }
  const isWell = fate === 'success';
  const isLate = fate === 'deadline' || fate === 'image';
  const condition = isWell
    ? { type: 'Complete', status: 'True', lastTransitionTime: now() }
    : {
        type: 'Failed',
        status: 'True',
        lastTransitionTime: now(),
        reason: isLate ? 'DeadlineExceeded' : 'BackoffLimitExceeded',
        message: isLate
          ? 'Job was active longer than specified deadline'
          : 'Job has reached the specified backoff limit',
      };
  store.set('Job', name, namespace, {
    status: {
      active: null,
      conditions: [condition],
      ...(isWell ? { completionTime: now(), succeeded: 1 } : { failed: 1 }),
    },
  });
}

function container(state: object) {
  return { name: 'main', image: 'watchdog:1', imageID: '', ready: false, restartCount: 0, state };
}
