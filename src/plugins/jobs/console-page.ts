import type { ConsolePage, PageStatus } from '../../core/contracts/console.ts';
import { contextOf, statesOf } from '../../core/host/history/page-states.ts';
import type { JobContext } from '../../machines/jobs/job.ts';

/** Runs that are listed; the newest. */
const MOST = 300;

const STATUS: Readonly<Record<string, PageStatus>> = {
  succeeded: 'ok',
  active: 'unknown',
  failed: 'failing',
  retained: 'failing',
  reaped: 'degraded',
};

/** Scheduled runs at a moment, of this process and of the cluster: how each ended, why, and when its alert ends. */
export const jobsPage: ConsolePage = {
  name: 'jobs',
  title: 'Scheduled runs',
  data: (moment) => {
    const runs = statesOf(moment, 'jobs.job')
      .filter(({ value }) => value !== 'waiting' && value !== 'forgotten')
      .map((state) => ({ state, context: contextOf<JobContext>(state) }))
      .sort((a, b) => b.context.startedAt - a.context.startedAt)
      .slice(0, MOST);
    const columns = [
      { name: 'startedAt', title: 'Began', format: 'time' },
      { name: 'run', title: 'Run' },
      { name: 'namespace', title: 'Namespace' },
      { name: 'state', title: 'State' },
      { name: 'took', title: 'Took', format: 'duration' },
      { name: 'cause', title: 'Why it failed' },
      { name: 'kept', title: 'Why it is still there' },
      { name: 'clearsAt', title: 'Its alert ends', format: 'time' },
    ] as const;
    const rows = runs.map(({ state: { ref, value }, context }) => {
      const { name, namespace, startedAt, endedAt, cause, retention, clearsAt } = context;
      const status = STATUS[String(value)];
      return {
        actor: ref,
        ...(status && { status }),
        cells: {
          startedAt,
          run: name,
          namespace,
          state: String(value),
          took: endedAt === undefined ? null : endedAt - startedAt,
          cause: cause ? `${cause.kind}: ${cause.text}` : '',
          kept: retention?.text ?? '',
          clearsAt: clearsAt ?? null,
        },
      };
    });
    return [
      { kind: 'table', columns, rows },
      {
        kind: 'text',
        text: 'A run of this process that does what the one before did is only counted, and is not listed here.',
      },
    ];
  },
};
