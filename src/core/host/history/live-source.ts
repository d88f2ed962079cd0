import type { Services, StoppedReports } from '../plugin/definition.ts';
import type { Registrations } from '../plugin/registrations.ts';
import { type LogSource, openFolder } from './log-source.ts';

/** The log of the running instance: what is durable of it. Words and machines are those that its plugins declare. */
export function liveSource({ dataDir, declarations }: Pick<Services, 'dataDir' | 'declarations'>): LogSource {
  return {
    mode: 'live',
    place: dataDir,
    open: () => openFolder(dataDir),
    wordsOf: async () =>
      Object.fromEntries(declarations().actors.map(({ type, describe }) => [type, describe])),
    actors: async () => declarations().actors,
    stoppedReports: async () => stoppedReportsOf(declarations()),
    declared: async () => declarations(),
  };
}

/** What the plugins of an instance report of the states in a log. */
export function stoppedReportsOf({ health }: Pick<Registrations, 'health'>): StoppedReports {
  return Object.fromEntries(health.flatMap(({ name, stopped }) => (stopped ? [[name, stopped]] : [])));
}
