import type { Cluster } from '../../core/contracts/cluster.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import type { Json } from '../../core/kernel/json.ts';
import type { JobContext } from '../../machines/jobs/job.ts';
import { readJobs } from './read.ts';

/** The type of a run's actor. */
export const JOB_ACTOR = 'jobs.job';
const CLUSTER = 'cluster/';

export interface WatchOptions {
  readonly namespaces: readonly string[];
  readonly everyMs: number;
}

/**
 * Looks at the cluster's Jobs again and again, one look at a time, and tells their actors what is new. A pod shows why
 * its Job failed for as long as there is a pod, so looks must be closer together than a Job's life.
 */
export class JobWatch {
  readonly #services: Services;
  readonly #cluster: Cluster;
  readonly #options: WatchOptions;
  readonly #stop = new AbortController();
  readonly #told = new Map<string, string>();
  #cancel = () => {};
  #running: Promise<void> = Promise.resolve();
  /** Of the newest look that came through, epoch milliseconds. */
  lookedAt: number | undefined;
  /** Why the newest look did not. */
  fault: string | undefined;

  constructor(services: Services, cluster: Cluster, options: WatchOptions) {
    this.#services = services;
    this.#cluster = cluster;
    this.#options = options;
  }

  start(): void {
    this.#running = this.look().then(() => this.#wait());
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#cancel();
    await this.#running;
  }

  async look(): Promise<void> {
    const { clock, logger } = this.#services;
    try {
      const { jobs, whole } = await readJobs(this.#cluster, this.#options.namespaces, this.#stop.signal);
      const at = clock.now();
      for (const { uid, facts } of jobs)
        this.#tell(uid, { type: 'OBSERVED', at, facts: facts as unknown as Json });
      if (whole) this.#miss(new Set(jobs.map(({ uid }) => uid)), at);
      this.lookedAt = at;
      this.fault = undefined;
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

  #tell(uid: string, event: { type: string; at: number; facts: Json }): void {
    const text = JSON.stringify(event.facts);
    if (this.#told.get(uid) === text) return;
    this.#told.set(uid, text);
    this.#services.actors.send(actorRef(JOB_ACTOR, `${CLUSTER}${uid}`), event);
  }

  /** What is listed no more is gone. */
  #miss(listed: ReadonlySet<string>, at: number): void {
    for (const uid of this.#told.keys()) if (!listed.has(uid)) this.#told.delete(uid);
    for (const { ref, value, context } of this.#services.actors.list(JOB_ACTOR)) {
      const { source } = context as unknown as JobContext;
      const uid = ref.slice(JOB_ACTOR.length + 1 + CLUSTER.length);
      if (source !== 'cluster' || value === 'reaped' || value === 'forgotten' || listed.has(uid)) continue;
      this.#services.actors.send(ref, { type: 'GONE', at });
    }
  }
}
