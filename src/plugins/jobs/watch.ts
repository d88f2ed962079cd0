import type { KubernetesApi } from '../../core/contracts/kubernetes.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import type { ActorSnapshot } from '../../core/kernel/actors/transition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { JobFacts } from '../../machines/jobs/failure.ts';
import { job } from '../../machines/jobs/job.ts';
import { readJobs } from './read.ts';
import { describeJobRecord } from './words.ts';

/** One run: its key is `<job>/<correlation>` for a run of this process, `cluster/<uid>` for a Job of a cluster. */
export const jobActor = defineActor({
  type: 'jobs.job',
  machine: job,
  version: 1,
  describe: describeJobRecord,
});

export type JobSnapshot = ActorSnapshot<typeof job>;

const KEY_PREFIX = 'cluster/';

export interface WatchOptions {
  readonly namespaces: readonly string[];
  readonly everyMs: number;
}

/**
 * Reads the cluster's Jobs repeatedly, one reading at a time, and sends what changed to their actors. Only the pod of a
 * Job shows why it failed, so readings must be closer together than the life of a pod.
 */
export class JobWatch {
  readonly #services: Services;
  readonly #cluster: KubernetesApi;
  readonly #options: WatchOptions;
  readonly #stop = new AbortController();
  /** What was sent of each Job last, by uid. */
  readonly #sent = new Map<string, string>();
  #cancel = () => {};
  #running: Promise<void> = Promise.resolve();
  /** When the Jobs were last read, epoch milliseconds. */
  readAt: number | undefined;
  /** Why the newest reading failed. */
  fault: string | undefined;

  constructor(services: Services, cluster: KubernetesApi, options: WatchOptions) {
    this.#services = services;
    this.#cluster = cluster;
    this.#options = options;
  }

  start(): void {
    this.#running = this.read().then(() => this.#wait());
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancel();
    await this.#running;
  }

  async read(): Promise<void> {
    const { clock, logger } = this.#services;
    try {
      const { jobs, whole } = await readJobs(this.#cluster, this.#options.namespaces, this.#stop.signal);
      const at = clock.now();
      for (const { uid, facts } of jobs) this.#send(uid, facts, at);
      if (whole) this.#sendGone(new Set(jobs.map(({ uid }) => uid)), at);
      this.readAt = at;
      this.fault = whole
        ? undefined
        : 'there are more Jobs, CronJobs or pods than could be read: name `namespaces`';
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const reason = isCoded(error) ? error.what : String(error);
      if (this.fault === undefined) logger.warn({ reason }, 'jobs.cluster_not_read');
      this.fault = reason;
    }
  }

  #wait(): void {
    if (this.#stop.signal.aborted) return;
    this.#cancel = this.#services.clock.after(this.#options.everyMs, () => this.start());
  }

  #send(uid: string, facts: JobFacts, at: number): void {
    const text = JSON.stringify(facts);
    if (this.#sent.get(uid) === text) return;
    this.#sent.set(uid, text);
    this.#services.actors.send(jobActor, `${KEY_PREFIX}${uid}`, { type: 'OBSERVED', at, facts });
  }

  /** Jobs that are no longer listed are gone. */
  #sendGone(listed: ReadonlySet<string>, at: number): void {
    for (const uid of this.#sent.keys()) if (!listed.has(uid)) this.#sent.delete(uid);
    const { actors } = this.#services;
    for (const { key, value, context } of actors.list(jobActor)) {
      const isListed = listed.has(key.slice(KEY_PREFIX.length));
      if (context.source !== 'cluster' || value === 'reaped' || value === 'forgotten' || isListed) continue;
      actors.send(jobActor, key, { type: 'GONE', at });
    }
  }
}
