import type { ActorState } from '../../core/kernel/actors/state.ts';
import type { CauseKind, JobContext } from '../../machines/jobs/job-shapes.ts';
import { clearsAfter } from '../../machines/jobs/retention.ts';

/** A run as `holdfast jobs` shows it. Times are ISO texts. */
export interface JobView {
  readonly run: string;
  readonly namespace: string;
  readonly job?: string;
  readonly source: 'own' | 'cluster';
  readonly state: 'active' | 'succeeded' | 'failed' | 'retained' | 'reaped';
  readonly startedAt: string;
  readonly endedAt?: string;
  /** Why it did not succeed. */
  readonly cause?: { readonly kind: CauseKind; readonly text: string };
  /** What its end means, in words. */
  readonly means?: string;
  /** Why it is still there, and until when if anything takes it away. */
  readonly kept?: { readonly why: string; readonly text: string; readonly until?: string };
  /** When the alert on it ends; `ifGoneNow` while it is still there. */
  readonly alertClears?: { readonly at: string; readonly ifGoneNow?: true };
}

const iso = (at: number): string => new Date(at).toISOString();

/** @param now epoch milliseconds @returns the newest first */
export function jobsView(states: readonly Readonly<ActorState>[], now: number): readonly JobView[] {
  return states
    .filter(({ value }) => value !== 'waiting' && value !== 'forgotten')
    .map((state) => viewOf(state.value as JobView['state'], state.context as unknown as JobContext, now))
    .sort((a, b) => b.startedAt.localeCompare(a.startedAt) || a.run.localeCompare(b.run));
}

/** Whether something failed and is still counted. */
export function isFailing({ state, cause }: JobView): boolean {
  return state === 'failed' || state === 'retained' || (state === 'reaped' && cause?.kind !== 'unseen');
}

function viewOf(state: JobView['state'], context: JobContext, now: number): JobView {
  const { source, namespace, name, job, startedAt, endedAt, cause, retention, clearsAt } = context;
  const means = meaning(state, context);
  const isThere = state === 'failed' || state === 'retained';
  return {
    run: name,
    namespace,
    ...(job !== undefined && { job }),
    source,
    state,
    startedAt: iso(startedAt),
    ...(endedAt !== undefined && { endedAt: iso(endedAt) }),
    ...(cause && { cause: { kind: cause.kind, text: cause.text } }),
    ...(means !== undefined && { means }),
    ...(isThere &&
      retention && {
        kept: {
          why: retention.why,
          text: retention.text,
          ...(retention.until !== undefined && { until: iso(retention.until) }),
        },
      }),
    ...(isThere && {
      alertClears:
        retention?.until === undefined
          ? { at: iso(clearsAfter(now)), ifGoneNow: true as const }
          : { at: iso(clearsAfter(retention.until)) },
    }),
    ...(state === 'reaped' &&
      cause?.kind !== 'unseen' &&
      clearsAt !== undefined && { alertClears: { at: iso(clearsAt) } }),
  };
}

/** For the watchdog the difference counts: a beat that was not delivered says the stack was well, a kill says nothing. */
function meaning(state: JobView['state'], { name, job = name, cause, pod }: JobContext): string | undefined {
  if (!job.includes('watchdog')) return undefined;
  if (state === 'active') return undefined;
  if (state === 'succeeded') return 'it went through; how the stack is, only the heartbeat says';
  if (!cause || cause.kind === 'unseen') return 'nothing is known of the stack';
  const saidSo = `${cause.text}${pod?.output ?? ''}`.includes('PUSH DELIVERY FAILED');
  if (saidSo || (cause.kind === 'exit' && (cause.exitCode ?? 1) === 1))
    return 'push delivery failed: the stack was well, and its heartbeat did not arrive';
  return 'killed, which is no failed delivery: nothing is known of the stack';
}
