import { coreActors, coreRoutes } from './builtin.ts';
import { type Declared, summarise } from './registrar.ts';
import type { Registrations } from './registrations.ts';
import type { PluginRun } from './run.ts';

/** What core and the plugins that work declare, as one frozen value in start order. */
export function collect(runs: readonly PluginRun[]): Registrations {
  const working = runs.filter(({ error }) => !error);
  const all = <K extends keyof Declared>(kind: K) =>
    Object.freeze(working.flatMap(({ declared }): readonly Declared[K][number][] => declared[kind]));
  return Object.freeze({
    plugins: Object.freeze(runs.map(({ definition }) => summarise(definition))),
    actors: Object.freeze([...coreActors, ...all('actors')]),
    routes: Object.freeze([...coreRoutes, ...all('routes')]),
    effects: all('effects'),
    surfaces: all('surfaces'),
    controls: all('controls'),
    commands: all('commands'),
    health: all('health'),
    listeners: all('listeners'),
    checks: all('checks'),
    schedules: all('schedules'),
    startWork: all('startWork'),
    readyWork: all('readyWork'),
    stopWork: all('stopWork'),
  });
}
