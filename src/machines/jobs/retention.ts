import type { JobFacts, Retention } from './job-shapes.ts';

const HOUR_MS = 3_600_000;

/** Why a failed Job is still there. @param at when that is asked */
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

/** When the alert on it ends if it is gone then: after one whole hour of the clock without it. */
export function clearsAfter(goneAt: number): number {
  return (Math.floor(goneAt / HOUR_MS) + 2) * HOUR_MS;
}
