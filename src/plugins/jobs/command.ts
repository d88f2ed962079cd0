import { askInstance } from '../../core/host/operations/ask.ts';
import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { isFailing, type JobView } from './view.ts';

export const LIST_PATH = '/jobs/list';

/** What the running instance answers. */
export interface JobsAnswer {
  readonly jobs: readonly JobView[];
  /** How the cluster was looked at; absent without one. */
  readonly cluster?: { readonly place: string; readonly lookedAt?: string; readonly fault?: string };
}

/** `holdfast jobs`: every run that is known, why it failed, why it is still there, and when its alert ends. */
export const jobsCommand: CommandDefinition = {
  name: 'jobs',
  summary:
    'List scheduled runs, of the cluster and our own: why one failed, why it is still there, when its alert ends',
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
  if (jobs.length === 0) lines.push('No run is known yet.');
  if (cluster?.fault !== undefined) {
    lines.push(
      `The cluster cannot be read, so its Jobs are as of ${cluster.lookedAt ?? 'never'}: ${cluster.fault}`,
    );
  }
  return lines;
}

const short = (iso: string): string => `${iso.slice(0, 19).replace('T', ' ')}Z`;
