import { ALERT_RAISE } from '../../contracts/alerts.ts';
import { MAY_BE_BATCHED } from '../../contracts/calls.ts';
import { type ActorDefinition, effectTypes, type Route } from '../../kernel/actors/definition.ts';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { certificateActor, certificateJudgedRoute } from '../certificates/actor.ts';
import { clockActor } from '../clock/machine.ts';
import { HostError } from '../errors/host-error.ts';
import { HTTP_REPLY } from '../http/pending-replies.ts';
import { dataCheckActor, dataCheckedRoute } from '../integrity/actor.ts';
import { checkpointRoute, lifecycleActor } from '../lifecycle/run.ts';
import { archiveDeletedRoute, recordsArchivedRoute, retentionActor } from '../retention/actor.ts';
import { commandWords } from './command.ts';
import { type Declared, summarise } from './registrar.ts';
import type { Owned, Registrations } from './registrations.ts';
import type { PluginRun } from './run.ts';

/** The owner of what no plugin declares. */
export const CORE = 'core';

/** What core itself declares: part of every instance, whatever plugins it has. */
const coreActors: readonly Owned<ActorDefinition>[] = [
  lifecycleActor,
  certificateActor,
  clockActor,
  dataCheckActor,
  retentionActor,
].map((actor) => Object.freeze({ ...actor, owner: CORE }));
const coreRoutes: readonly Owned<Route>[] = [
  certificateJudgedRoute,
  checkpointRoute,
  dataCheckedRoute,
  recordsArchivedRoute,
  archiveDeletedRoute,
].map((route) => Object.freeze({ ...route, owner: CORE }));

/** Effect types that core carries out itself (`runtime/wiring.ts`); a trailing `*` stands for any rest. */
const CORE_EFFECTS: readonly string[] = ['timer.*', HTTP_REPLY, ALERT_RAISE];

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
    contributions: all('contributions'),
    overwrittenFiles: all('overwrittenFiles'),
    readyWork: all('readyWork'),
    stopWork: all('stopWork'),
  });
}

/** A plugin that cannot work as declared, and why. */
export interface Gap {
  readonly plugin: string;
  readonly error: HoldfastError;
}

/**
 * Names that two plugins (or a plugin and core) both claim.
 *
 * @throws HF_PLUGIN_CONFLICT an actor type, effect, surface, command, health fact or check is declared twice
 */
export function refuseConflicts(registrations: Registrations): void {
  const { actors, effects, surfaces, listeners, commands, health } = registrations;
  for (const { type, owner } of effects) {
    if (isOfCore(type)) throw conflict(`Effect ${type}`, CORE, owner);
  }
  refuseTwice('Actor type', actors, ({ type }) => type);
  refuseTwice('Effect', effects, ({ type }) => type);
  const named = surfaces.map(({ options: { name }, owner }) => ({ name, owner }));
  refuseTwice('Surface', [...named, ...listeners], ({ name }) => name);
  refuseTwice('Command', commands, ({ name }) => commandWords(name).join(' '));
  refuseTwice('Health fact', health, ({ name }) => name);
  refuseTwice('Check', registrations.checks, ({ name }) => name);
}

/**
 * The first declaration that cannot work: an actor that asks for an effect without a handler or whose effects would
 * precede its records, or a route to an unknown actor type. The plugin that owns it is the one that cannot work.
 */
export function findGap(registrations: Registrations): Gap | undefined {
  const { actors, effects, routes } = registrations;
  const handled = new Set(effects.map(({ type }) => type));
  for (const { owner, type, machine, durability = 'sync' } of actors) {
    if (durability !== 'sync' && !MAY_BE_BATCHED.has(type)) {
      return { plugin: owner, error: new HostError('HF_ACTOR_BATCHED', { actor: type }) };
    }
    const effect = effectTypes(machine).find((name) => !handled.has(name) && !isOfCore(name));
    if (effect !== undefined) {
      return { plugin: owner, error: new HostError('HF_EFFECT_UNHANDLED', { actor: type, effect }) };
    }
  }
  const types = new Set(actors.map(({ type }) => type));
  for (const { owner, topic, to } of routes) {
    if (!types.has(to)) {
      const details = { plugin: owner, topic: topic.name, actor: to };
      return { plugin: owner, error: new HostError('HF_ROUTE_TARGET', details) };
    }
  }
  return undefined;
}

function refuseTwice<T>(kind: string, items: readonly Owned<T>[], nameOf: (item: T) => string): void {
  const owners = new Map<string, string>();
  for (const item of items) {
    const name = nameOf(item);
    const first = owners.get(name);
    if (first !== undefined) throw conflict(`${kind} ${name}`, first, item.owner);
    owners.set(name, item.owner);
  }
}

function conflict(what: string, first: string, second: string): HoldfastError {
  return new HostError('HF_PLUGIN_CONFLICT', { what, first, second });
}

function isOfCore(type: string): boolean {
  return CORE_EFFECTS.some((pattern) =>
    pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern,
  );
}
