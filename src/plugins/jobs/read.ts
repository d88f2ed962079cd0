import type { KubernetesApi, KubernetesObject } from '../../core/contracts/kubernetes.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { JobFacts, PodFacts } from '../../machines/jobs/failure.ts';

const JOB = { apiVersion: 'batch/v1', kind: 'Job' };
const CRON_JOB = { apiVersion: 'batch/v1', kind: 'CronJob' };
const POD = { apiVersion: 'v1', kind: 'Pod' };
/** Characters that are kept of a text of the cluster: its end, which has the error. */
const TEXT_LIMIT = 1_000;

/** One Job as the cluster describes it. */
export interface JobReading {
  readonly uid: string;
  readonly facts: JobFacts;
}

/**
 * The Jobs of a cluster, with their pods and the CronJobs that made them.
 *
 * @param namespaces all of them when the list is empty
 * @returns `whole` is false when there were more than could be read
 * @throws HF_KUBERNETES_UNREACHABLE, HF_KUBERNETES_REFUSED, HF_KUBERNETES_CONFIG
 */
export async function readJobs(
  cluster: KubernetesApi,
  namespaces: readonly string[],
  signal: AbortSignal,
): Promise<{ readonly jobs: readonly JobReading[]; readonly whole: boolean }> {
  const places = namespaces.length === 0 ? [{}] : namespaces.map((namespace) => ({ namespace }));
  const found: JobReading[] = [];
  let whole = true;
  for (const where of places) {
    // Pods are read first, because a pod may go away when its Job ends.
    const pods = await cluster.list(POD, where, signal);
    const jobs = await cluster.list(JOB, where, signal);
    const cronJobs = await cluster.list(CRON_JOB, where, signal);
    whole &&= pods.whole && jobs.whole && cronJobs.whole;
    const listed = { jobs: jobs.objects, pods: pods.objects, cronJobs: cronJobs.objects };
    found.push(...listed.jobs.map((job) => readingOf(job, listed)));
  }
  return { jobs: found, whole };
}

interface ListedObjects {
  readonly jobs: readonly KubernetesObject[];
  readonly pods: readonly KubernetesObject[];
  readonly cronJobs: readonly KubernetesObject[];
}

function readingOf(job: KubernetesObject, { jobs, pods, cronJobs }: ListedObjects): JobReading {
  const { name, namespace = 'default' } = job.metadata;
  const uid = uidOf(job);
  const status = fieldsOf(job.status);
  const end = endOf(status);
  const owner = cronJobs.find((each) => isOwnedBy(job, each));
  const createdAt = time(job.metadata.creationTimestamp) ?? 0;
  const pod = pods
    .filter((each) => isOwnedBy(each, job))
    .sort(byAge)
    .at(-1);
  return {
    uid,
    facts: {
      namespace,
      name,
      phase: end.phase,
      createdAt: time(status.startTime) ?? createdAt,
      ...defined({
        endedAt: end.endedAt,
        reason: end.reason,
        message: end.message,
        ttlSeconds: number(fieldsOf(job.spec).ttlSecondsAfterFinished),
        pod: pod && podOf(pod),
      }),
      ...(owner && {
        owner: {
          name: owner.metadata.name,
          ...defined({ ttlSeconds: number(templateOf(owner).ttlSecondsAfterFinished) }),
          failedLimit: number(fieldsOf(owner.spec).failedJobsHistoryLimit) ?? 1,
          newerFailed: jobs.filter(
            (each) =>
              isOwnedBy(each, owner) &&
              endOf(fieldsOf(each.status)).phase === 'failed' &&
              (time(each.metadata.creationTimestamp) ?? 0) > createdAt,
          ).length,
        },
      }),
    },
  };
}

function endOf(status: Fields): Pick<JobFacts, 'phase' | 'endedAt' | 'reason' | 'message'> {
  const conditions = objectsOf(status.conditions).filter((each) => each.status === 'True');
  const failed = conditions.find(({ type }) => type === 'Failed');
  if (failed) {
    return {
      phase: 'failed',
      ...defined({
        endedAt: time(failed.lastTransitionTime),
        reason: text(failed.reason),
        message: text(failed.message),
      }),
    };
  }
  const complete = conditions.find(({ type }) => type === 'Complete');
  if (!complete) return { phase: 'active' };
  const endedAt = time(status.completionTime) ?? time(complete.lastTransitionTime);
  return { phase: 'succeeded', ...defined({ endedAt }) };
}

function podOf(pod: KubernetesObject): PodFacts {
  const status = fieldsOf(pod.status);
  const containers = [...objectsOf(status.initContainerStatuses), ...objectsOf(status.containerStatuses)];
  const states = containers.map(({ state, lastState }) => ({ ...fieldsOf(lastState), ...fieldsOf(state) }));
  const ends = states.map(({ terminated }) => fieldsOf(terminated));
  const end =
    ends.find(({ exitCode }) => number(exitCode) !== 0 && number(exitCode) !== undefined) ??
    ends.at(-1) ??
    {};
  const waiting = states
    .map((state) => text(fieldsOf(state.waiting).reason))
    .find((each) => each !== undefined);
  // Only its own container counts: an init container may have run long before.
  const own = objectsOf(status.containerStatuses).map(({ state }) => fieldsOf(state));
  const ran = own.some(({ running, terminated }) => isObject(running) || isObject(terminated));
  return {
    name: pod.metadata.name,
    ran,
    ...defined({
      phase: text(status.phase),
      reason: text(status.reason),
      message: text(status.message),
      waiting,
      exitCode: number(end.exitCode),
      ended: text(end.reason),
      output: text(end.message),
    }),
  };
}

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {});
const objectsOf = (value: unknown): readonly Fields[] => (Array.isArray(value) ? value.map(fieldsOf) : []);
const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value.slice(-TEXT_LIMIT) : undefined;
const number = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);
const uidOf = ({ metadata }: KubernetesObject): string =>
  metadata.uid ?? `${metadata.namespace}/${metadata.name}`;
const templateOf = (cronJob: KubernetesObject): Fields =>
  fieldsOf(fieldsOf(fieldsOf(cronJob.spec).jobTemplate).spec);

function time(value: unknown): number | undefined {
  const at = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

function isOwnedBy(object: KubernetesObject, owner: KubernetesObject): boolean {
  const references = 'ownerReferences' in object.metadata ? object.metadata.ownerReferences : [];
  return objectsOf(references).some(({ uid }) => uid === owner.metadata.uid);
}

function byAge(a: KubernetesObject, b: KubernetesObject): number {
  return String(a.metadata.creationTimestamp).localeCompare(String(b.metadata.creationTimestamp));
}

/** The fields that have a value. */
function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const result: { [K in keyof T]?: Exclude<T[K], undefined> } = {};
  for (const key in fields) {
    const value = fields[key];
    if (isDefined(value)) result[key] = value;
  }
  return result;
}

function isDefined<V>(value: V): value is Exclude<V, undefined> {
  return value !== undefined;
}
