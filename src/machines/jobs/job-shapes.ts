/** What goes into and comes out of a job: context, events, and what is known of its pod. Times are epoch milliseconds. */

/** What a pod's status said, as long as there was a pod. */
export interface PodFacts {
  readonly name: string;
  readonly phase?: string | undefined;
  /** Of the pod itself, e.g. `Evicted`. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  /** Why its container does not run yet, e.g. `ImagePullBackOff`. */
  readonly waiting?: string | undefined;
  /** Whether its container ever ran. */
  readonly ran?: boolean | undefined;
  readonly exitCode?: number | undefined;
  /** Of the container's end, e.g. `OOMKilled`. */
  readonly ended?: string | undefined;
  /** The end of its output, where the pod keeps it. */
  readonly output?: string | undefined;
}

/** What a Job's object says, and the CronJob that made it. */
export interface JobFacts {
  readonly namespace: string;
  readonly name: string;
  readonly phase: 'active' | 'succeeded' | 'failed';
  readonly createdAt: number;
  readonly endedAt?: number | undefined;
  /** Of its condition, e.g. `DeadlineExceeded`. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly ttlSeconds?: number | undefined;
  /** The CronJob that made it, as it is now. */
  readonly owner?:
    | {
        readonly name: string;
        readonly ttlSeconds?: number | undefined;
        readonly failedLimit: number;
        /** Failed Jobs of it that came after this one. */
        readonly newerFailed: number;
      }
    | undefined;
  readonly pod?: PodFacts | undefined;
}

export type CauseKind = 'exit' | 'oom' | 'deadline' | 'image' | 'eviction' | 'unknown' | 'unseen';

/** Why a run did not succeed. */
export interface Cause {
  readonly kind: CauseKind;
  readonly text: string;
  readonly exitCode?: number | undefined;
}

/** Why a finished Job is still there, and until when if anything takes it away. */
export interface Retention {
  readonly why: 'ttl' | 'ttl-overdue' | 'older-than-ttl' | 'no-ttl';
  readonly text: string;
  readonly until?: number | undefined;
}

export interface JobContext {
  /** Whether this process ran it, or a cluster. */
  readonly source: 'own' | 'cluster';
  readonly namespace: string;
  readonly name: string;
  /** The schedule that it is a run of, where one made it. */
  readonly job?: string | undefined;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  /** When it was last heard of. */
  readonly seenAt: number;
  /** Everything that its pod ever showed: the pod itself goes away. */
  readonly pod?: PodFacts | undefined;
  readonly cause?: Cause | undefined;
  readonly retention?: Retention | undefined;
  readonly goneAt?: number | undefined;
  /** When the alert on it ends, once it is gone. */
  readonly clearsAt?: number | undefined;
}

export type JobEvent =
  | { type: 'STARTED'; at: number; job: string }
  | { type: 'ENDED'; at: number; job: string; outcome: 'succeeded' | 'failed'; cause?: string; text?: string }
  /** The process that ran it is another one now. */
  | { type: 'ORPHANED'; at: number }
  | { type: 'OBSERVED'; at: number; facts: JobFacts }
  | { type: 'GONE'; at: number };

/** As `ttlSecondsAfterFinished` of the watchdog's Job, for our own runs too. */
export const TTL_MS = 300_000;
/** Jobs of this process are said to be in this namespace. */
export const OWN_NAMESPACE = 'holdfast';
