import type { JobRepeated } from '../../core/contracts/jobs.ts';
import { askInstance } from '../../core/host/operations/control-client.ts';
import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { isoTime } from '../../core/kernel/clock.ts';
import type { CauseKind } from '../../machines/jobs/failure.ts';
import { clearsAfter } from '../../machines/jobs/failure.ts';
import { type JobContext, ownRunName } from '../../machines/jobs/job.ts';
import type { JobSnapshot } from './watch.ts';

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
  /** What its end says about the stack that it watches. */
  readonly means?: string;
  /** Why it is still there, and until when if anything takes it away. */
  readonly kept?: { readonly why: string; readonly text: string; readonly until?: string };
  /** When the alert on it ends; `ifGoneNow` while it is still there. */
  readonly alertClears?: { readonly at: string; readonly ifGoneNow?: true };
}

/**
 * @param now epoch milliseconds
 * @param heartbeatJobs the jobs that send a heartbeat only when the stack is healthy: their ends say something about it
 * @returns the newest first
 */
export function jobsView(
  runs: readonly JobSnapshot[],
  now: number,
  heartbeatJobs: readonly string[],
): readonly JobView[] {
  return runs
    .flatMap(({ value, context }) => {
      if (value === 'waiting' || value === 'forgotten') return [];
      const { name, job = name } = context;
      return viewOf(value, context, now, heartbeatJobs.includes(job));
    })
    .sort((a, b) => b.startedAt.localeCompare(a.startedAt) || a.run.localeCompare(b.run));
}

/** How long a run that is not recorded is listed: until the next one, which comes after minutes. */
const REPEAT_LISTED_MS = 420_000;

/** Runs that are not recorded, because they do what the recorded one did. @param now epoch milliseconds */
export function repeatsView(repeats: readonly JobRepeated[], now: number): readonly JobView[] {
  return repeats
    .filter(({ at }) => now - at < REPEAT_LISTED_MS)
    .map(({ phase, job, at }) => ({
      ...{ run: ownRunName(job, at), namespace: 'holdfast', job, source: 'own' as const },
      state: phase === 'started' ? ('active' as const) : ('succeeded' as const),
      startedAt: isoTime(at),
      ...(phase === 'ended' && { endedAt: isoTime(at), means: 'it ended as the recorded one before it' }),
    }));
}

/** Whether the run failed and still counts. */
export function isFailing({ state, cause }: JobView): boolean {
  return state === 'failed' || state === 'retained' || (state === 'reaped' && cause?.kind !== 'unseen');
}

function viewOf(state: JobView['state'], context: JobContext, now: number, sendsHeartbeat: boolean): JobView {
  const { source, namespace, name, job, startedAt, endedAt, cause, retention, clearsAt } = context;
  const means = sendsHeartbeat ? meaning(state, context) : undefined;
  const isThere = state === 'failed' || state === 'retained';
  return {
    run: name,
    namespace,
    ...(job !== undefined && { job }),
    source,
    state,
    startedAt: isoTime(startedAt),
    ...(endedAt !== undefined && { endedAt: isoTime(endedAt) }),
    ...(cause && { cause: { kind: cause.kind, text: cause.text } }),
    ...(means !== undefined && { means }),
    ...(isThere &&
      retention && {
        kept: {
          why: retention.why,
          text: retention.text,
          ...(retention.until !== undefined && { until: isoTime(retention.until) }),
        },
      }),
    ...(isThere && {
      alertClears:
        retention?.until === undefined
          ? { at: isoTime(clearsAfter(now)), ifGoneNow: true as const }
          : { at: isoTime(clearsAfter(retention.until)) },
    }),
    ...(state === 'reaped' &&
      cause?.kind !== 'unseen' &&
      clearsAt !== undefined && { alertClears: { at: isoTime(clearsAt) } }),
  };
}

/**
 * What the end of a run that sends a heartbeat says about the stack. The heartbeat is sent only when the stack is healthy, so
 * one that was not delivered means a healthy stack; a run that was killed says nothing.
 */
function meaning(state: JobView['state'], { cause, pod }: JobContext): string | undefined {
  if (state === 'active') return undefined;
  if (state === 'succeeded') return 'the run ended well; only the heartbeat says how the stack is';
  if (!cause || cause.kind === 'unseen') return 'nothing is known of the stack';
  const reportsDelivery = `${cause.text}${pod?.output ?? ''}`.includes('PUSH DELIVERY FAILED');
  if (reportsDelivery || (cause.kind === 'exit' && (cause.exitCode ?? 1) === 1))
    return 'push delivery failed: the stack was healthy, and its heartbeat did not arrive';
  return 'killed, which is no failed delivery: nothing is known of the stack';
}

export const LIST_PATH = '/jobs/list';

/** The answer of the running instance. */
export interface JobsAnswer {
  readonly jobs: readonly JobView[];
  /** How reading the cluster went; absent without one. */
  readonly cluster?: { readonly place: string; readonly lookedAt?: string; readonly fault?: string };
}

/** `holdfast jobs`: every run, why it failed, why it is still there, and when its alert ends. */
export const jobsCommand: CommandDefinition = {
  name: 'jobs',
  summary:
    'Lists scheduled runs, of the cluster and of Holdfast: why one failed, why it is still there, when its alert ends',
  example: 'holdfast jobs',
  async run(_args, _flags, command) {
    const { json, print } = command;
    const answer = await askInstance<JobsAnswer>(command, LIST_PATH, {}, 'it does not run the plugin jobs');
    if (json) print(JSON.stringify(answer, null, 2));
    else for (const line of linesOf(answer)) print(line);
    return answer.cluster?.fault !== undefined || answer.jobs.some(isFailing) ? 1 : 0;
  },
};

function linesOf({ jobs, cluster }: JobsAnswer): string[] {
  const width = Math.max(0, ...jobs.map(({ namespace, run }) => `${namespace}/${run}`.length));
  const lines = jobs.flatMap((job) => {
    const { namespace, run, state, endedAt, startedAt, cause, means, kept, alertClears } = job;
    const when = endedAt === undefined ? `since ${short(startedAt)}` : `at ${short(endedAt)}`;
    const row = (name: string, text: string) => `    ${name.padEnd(6)} ${text}`;
    const until = kept?.until === undefined ? '' : ` at ${short(kept.until)}`;
    return [
      `${`${namespace}/${run}`.padEnd(width)}  ${state} ${when}`,
      ...(cause ? [row('why', `${cause.kind}: ${cause.text}`)] : []),
      ...(means === undefined ? [] : [row('means', means)]),
      ...(kept ? [row('here', `${kept.text}${until}`)] : []),
      ...(alertClears
        ? [
            row(
              'alert',
              alertClears.ifGoneNow
                ? `goes on while it is here; were it gone now, until ${short(alertClears.at)}`
                : `until ${short(alertClears.at)}, after a whole hour without it`,
            ),
          ]
        : []),
    ];
  });
  if (jobs.length === 0) lines.push('No run has been seen yet.');
  if (cluster?.fault !== undefined) {
    lines.push(
      `The cluster cannot be read, so its Jobs are as of ${cluster.lookedAt ?? 'never'}: ${cluster.fault}`,
    );
  }
  return lines;
}

const short = (iso: string): string => `${iso.slice(0, 19).replace('T', ' ')}Z`;
