/**
 * Why a Job failed, and why it is still there. Times are epoch milliseconds.
 */

/** The status of a pod. */
export interface PodFacts {
  readonly name: string;
  readonly phase?: string | undefined;
  /** Reason of the pod itself, e.g. `Evicted`. */
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  /** Why its container does not run yet, e.g. `ImagePullBackOff`. */
  readonly waiting?: string | undefined;
  /** Whether its container ever ran. */
  readonly ran?: boolean | undefined;
  readonly exitCode?: number | undefined;
  /** Reason of the container's end, e.g. `OOMKilled`. */
  readonly ended?: string | undefined;
  /** The end of its output, where the pod keeps it. */
  readonly output?: string | undefined;
}

/** A Job's object, with its pod and the CronJob that made it. */
export interface JobFacts {
  readonly namespace: string;
  readonly name: string;
  readonly phase: 'active' | 'succeeded' | 'failed';
  readonly createdAt: number;
  readonly endedAt?: number | undefined;
  /** Reason of its condition, e.g. `DeadlineExceeded`. */
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

/** Why a finished Job is still there, and until when when something removes it. */
export interface Retention {
  readonly why: 'ttl' | 'ttl-overdue' | 'older-than-ttl' | 'no-ttl';
  readonly text: string;
  readonly until?: number | undefined;
}

/** As `timeout` exits, and our own watchdog at its deadline. */
const DEADLINE_EXIT = 124;
const IMAGE =
  /^(ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|ImageInspectError|RegistryUnavailable)$/;

/** Joins two readings of a pod: the later one may show less, or no pod at all. */
export function joinPods(before: PodFacts | undefined, now: PodFacts | undefined): PodFacts | undefined {
  if (!before || !now || before.name !== now.name) return now ?? before;
  const newer = Object.entries(now).filter(([, value]) => value !== undefined);
  return { ...before, ...Object.fromEntries(newer), ran: before.ran === true || now.ran === true };
}

/**
 * Why a Job failed. Its condition alone is ambiguous: exit 1, memory and eviction all end as `BackoffLimitExceeded`, a
 * deadline and an image that can't be pulled as `DeadlineExceeded`; the status of the pod tells them apart.
 */
export function classify({ reason, message }: JobFacts, pod: PodFacts | undefined): Cause {
  const { exitCode } = pod ?? {};
  const code = exitCode === undefined ? {} : { exitCode };
  if (pod?.reason === 'Evicted') {
    return { kind: 'eviction', text: `its node evicted the pod${detail(pod.message)}`, ...code };
  }
  if (pod?.ended === 'OOMKilled') {
    return { kind: 'oom', text: `killed at its memory limit (OOMKilled, exit ${exitCode ?? 137})`, ...code };
  }
  if (reason === 'DeadlineExceeded') return overdue(pod, code);
  if (exitCode === DEADLINE_EXIT) {
    return { kind: 'deadline', text: `it ended itself at its deadline${detail(pod?.output)}`, ...code };
  }
  if (exitCode === 137) {
    const text = 'killed by signal 9 (exit 137); memory is the usual reason, but nobody wrote OOMKilled';
    return { kind: 'unknown', text, ...code };
  }
  if (exitCode !== undefined && exitCode !== 0) {
    return { kind: 'exit', text: `it ended itself with exit ${exitCode}${detail(pod?.output)}`, ...code };
  }
  const condition = reason === undefined ? 'without a reason' : `with ${reason}${detail(message)}`;
  const seen = pod ? 'its pod did not show why' : 'its pod was gone before it was read';
  return { kind: 'unknown', text: `it failed ${condition}, and ${seen}`, ...code };
}

function overdue(pod: PodFacts | undefined, code: { exitCode?: number }): Cause {
  if (pod?.ran !== true && pod?.waiting !== undefined && IMAGE.test(pod.waiting)) {
    const text = `its image could not be pulled (${pod.waiting}) until the deadline was over`;
    return { kind: 'image', text, ...code };
  }
  if (pod?.ran === true) return { kind: 'deadline', text: 'it still ran at its deadline', ...code };
  const text = 'its deadline passed; nobody saw whether it ran or its image could not be pulled';
  return { kind: 'unknown', text, ...code };
}

const detail = (text: string | undefined): string =>
  text === undefined || text.trim() === '' ? '' : `: ${text.trim().slice(-300).replace(/\s+/g, ' ')}`;

const HOUR_MS = 3_600_000;

/** Why a failed Job is still there. @param at now */
export function retention(facts: JobFacts, at: number): Retention {
  const { ttlSeconds, endedAt = at, owner, namespace, name } = facts;
  const byHand = `delete it by hand: kubectl delete job -n ${namespace} ${name}`;
  if (ttlSeconds !== undefined) {
    const until = endedAt + ttlSeconds * 1_000;
    if (until > at) return { why: 'ttl', text: `its TTL of ${ttlSeconds} s takes it away`, until };
    const text = `its TTL of ${ttlSeconds} s is over and nothing took it away (a finalizer, or no TTL controller); ${byHand}`;
    return { why: 'ttl-overdue', text };
  }
  const kept = history(owner);
  if (owner?.ttlSeconds !== undefined) {
    const text = `it was made before ${owner.name} had its TTL of ${owner.ttlSeconds} s, which holds only for Jobs made after; ${kept}; ${byHand}`;
    return { why: 'older-than-ttl', text };
  }
  return { why: 'no-ttl', text: `it has no TTL; ${kept}; ${byHand}` };
}

function history(owner: JobFacts['owner']): string {
  if (!owner) return 'no CronJob owns it, so no history limit counts';
  const { name, failedLimit, newerFailed } = owner;
  if (newerFailed >= failedLimit)
    return `failedJobsHistoryLimit ${failedLimit} of ${name} no longer keeps it`;
  const missing = failedLimit - newerFailed;
  const newer = missing === 1 ? 'a newer failed Job' : `${missing} newer failed Jobs`;
  return `failedJobsHistoryLimit ${failedLimit} of ${name} keeps it until there ${missing === 1 ? 'is' : 'are'} ${newer}`;
}

/** When the alert on a Job ends: after one whole hour of the clock without it. */
export function clearsAfter(goneAt: number): number {
  return (Math.floor(goneAt / HOUR_MS) + 2) * HOUR_MS;
}
