import { Cron } from 'croner';
import type { Topic } from '../../../bus/topic.ts';
import type { ActorDefinition } from '../../kernel/actors/definition.ts';
import type { Route } from '../../kernel/actors/route.ts';
import { CoreError } from '../../kernel/errors/core-error.ts';
import type { Container } from './container.ts';
import type { PluginContext, PluginDefinition, Services } from './definition.ts';
import type { Owned, PluginSummary, Registrations } from './registrations.ts';

/** With lists that can still be added to. */
type Collecting<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer Item)[] ? Item[] : T[K] };

/** What one plugin declared. */
export type Declared = Collecting<Omit<Registrations, 'plugins'>>;

/** A plugin's own view while it registers and after: where its declarations go, and what its handlers may use. */
export interface Registrar {
  readonly context: PluginContext;
  readonly declared: Declared;
  /** Ends declaring: from here on every declaration is HF_PLUGIN_FROZEN. */
  freeze(): void;
  /** From here on `context.services` works. */
  open(services: Services): void;
}

/**
 * Makes the context that a plugin's `register` is called with. It only collects; nothing runs.
 *
 * @param guard throws when the plugin has failed, so that an effect of a failed plugin fails with its reason
 */
export function createRegistrar(
  definition: PluginDefinition,
  container: Container,
  guard: () => void,
): Registrar {
  const plugin = definition.name;
  const declared = emptyDeclared();
  let frozen = false;
  let services: Services | undefined;

  const refuseLate = (what: string): void => {
    if (frozen) throw new CoreError('HF_PLUGIN_FROZEN', { plugin, what });
  };
  const add = <T extends object>(list: Owned<T>[], item: T, what: string): void => {
    refuseLate(what);
    list.push(Object.freeze({ ...item, owner: plugin }));
  };

  const context: PluginContext = {
    get services() {
      if (!services) throw new CoreError('HF_PLUGIN_EARLY', { plugin });
      return services;
    },
    provide(token, factory) {
      refuseLate(`token ${token.name}`);
      container.provide(definition, token, factory);
    },
    actor: (actor) => add(declared.actors, actor, `actor ${actor.type}`),
    route(topicOrRoute: Topic | Route, actor?: ActorDefinition, map?: Route['map']) {
      const route =
        'to' in topicOrRoute
          ? topicOrRoute
          : { topic: topicOrRoute, to: actor?.type ?? '', map: map ?? (() => []) };
      add(declared.routes, route, `a route of ${route.topic.name}`);
    },
    effect(type, handler, options) {
      const guarded: typeof handler = (params, effect) => {
        guard();
        return handler(params, effect);
      };
      add(declared.effects, { ...options, type, handler: guarded }, `effect ${type}`);
    },
    http: (options, build) => add(declared.surfaces, { options, build }, `surface ${options.name}`),
    listener: (listener) => add(declared.listeners, listener, `listener ${listener.name}`),
    control: (build) => add(declared.controls, { build }, 'routes on the control socket'),
    command: (command) => add(declared.commands, command, `command ${command.name}`),
    check: (check) => add(declared.checks, check, `check ${check.name}`),
    health: (name, report, stopped) =>
      add(declared.health, { name, report, ...(stopped && { stopped }) }, `health fact ${name}`),
    schedule(cron, topic) {
      refuseLate(`a schedule of ${topic.name}`);
      new Cron(cron, { paused: true }).stop(); // throws here, with the plugin's name, instead of at its first time
      add(declared.schedules, { cron, topic }, `a schedule of ${topic.name}`);
    },
    onStart: (work) => add(declared.startWork, { work }, 'work at start'),
    onReady: (work) => add(declared.readyWork, { work }, 'work when ready'),
    onStop: (work) => add(declared.stopWork, { work }, 'work at stop'),
  };

  return {
    context,
    declared,
    freeze() {
      frozen = true;
    },
    open(opened) {
      services = opened;
    },
  };
}

function emptyDeclared(): Declared {
  return {
    actors: [],
    routes: [],
    effects: [],
    surfaces: [],
    listeners: [],
    controls: [],
    commands: [],
    health: [],
    checks: [],
    schedules: [],
    startWork: [],
    readyWork: [],
    stopWork: [],
  };
}

/** A plugin's definition as plain names. */
export function summarise(definition: PluginDefinition): PluginSummary {
  return Object.freeze({
    name: definition.name,
    ...(definition.about && { about: definition.about }),
    requires: (definition.requires ?? []).map(({ name }) => name),
    wants: (definition.wants ?? []).map(({ name }) => name),
    provides: (definition.provides ?? []).map(({ name }) => name),
    onFailure: definition.onFailure ?? 'abort',
  });
}
