import { Cron } from 'croner';
import type { Envelope } from '../../../bus/bus.ts';
import type { Topic } from '../../../bus/topic.ts';
import type { ContributionPoint } from '../../contracts/token.ts';
import type { ActorDefinition, RouteTarget } from '../../kernel/actors/definition.ts';
import type { EffectRegistration } from '../../kernel/actors/effect.ts';
import { HostError } from '../errors/host-error.ts';
import type { Listener, ListenerDeclaration } from '../http/contract.ts';
import type { Container } from './container.ts';
import type { PlacementOptions, PluginContext, PluginDefinition, RouteOptions } from './definition.ts';
import type { Owned, PluginSummary, Registrations } from './registrations.ts';

/** With lists that can still be added to. */
type Collecting<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer Item)[] ? Item[] : T[K] };

/** What one plugin declared. */
export type Declared = Collecting<Omit<Registrations, 'plugins'>>;

/** A plugin's own view while it registers and after: where its declarations go, and what its handlers may use. */
export interface Registrar {
  readonly context: PluginContext<unknown>;
  readonly declared: Declared;
  /** Ends declaring: from here on every declaration is HF_PLUGIN_FROZEN. */
  freeze(): void;
  /** From here on handlers are called with what the plugin's `start` returned. */
  started(value: unknown): void;
  /** From here on the plugin's effects fail with this error. */
  failed(error: Error): void;
  /** The plugin has stopped, and may start again: until then its handlers throw this error. */
  stopped(reason: () => Error): void;
  /** It starts again: what is asked of its handlers waits until it has. */
  restarting(): void;
}

/** Makes the context that a plugin's `register` is called with. It only collects; nothing runs. */
export function createRegistrar(definition: PluginDefinition, container: Container): Registrar {
  const plugin = definition.name;
  const declared = emptyDeclared();
  let starting = unheard();
  let frozen = false;
  let started: { readonly value: unknown } | undefined;
  let failure: (() => Error) | undefined;
  let isStopped = false;

  const refuseLate = (what: string): void => {
    if (frozen) throw new HostError('HF_PLUGIN_FROZEN', { plugin, what });
  };
  const add = <T extends object>(list: Owned<T>[], item: T, what: string): void => {
    refuseLate(what);
    list.push(Object.freeze({ ...item, owner: plugin }));
  };
  const placed = ({ singleton = definition.singleton }: PlacementOptions = {}): PlacementOptions =>
    singleton === undefined ? {} : { singleton };
  const startedValue = (): unknown => {
    if (started) return started.value;
    throw isStopped && failure ? failure() : new HostError('HF_PLUGIN_EARLY', { plugin });
  };

  const context: PluginContext<unknown> = {
    provide(token, factory) {
      refuseLate(`token ${token.name}`);
      container.provide(definition, token, () => factory(startedValue()));
    },
    contribute<T>(point: ContributionPoint<T>, contribution: T | ((started: unknown) => T)) {
      const isMade = (one: T | ((started: unknown) => T)): one is (started: unknown) => T =>
        typeof one === 'function';
      const registration = isMade(contribution)
        ? { make: () => contribution(startedValue()) }
        : { make: () => contribution, value: contribution };
      add(declared.contributions, { point: point.name, ...registration }, `a contribution to ${point.name}`);
    },
    actor: (actor, options) => add(declared.actors, { ...actor, ...placed(options) }, `actor ${actor.type}`),
    route<T>(
      topic: Topic<T>,
      actor: ActorDefinition,
      map: (envelope: Envelope<T>, started: unknown) => readonly RouteTarget[],
      { everyHost, ownHost, ownState }: RouteOptions = {},
    ) {
      if (everyHost && !actor.hear)
        throw new HostError('HF_PLUGIN_EVERY_HOST', { plugin, topic: topic.name, actor: actor.type });
      // A map that takes the message alone serves those too that come while the plugin starts.
      const mapped = (envelope: Envelope<T>) => map(envelope, map.length > 1 ? startedValue() : undefined);
      const route = {
        topic,
        to: actor.type,
        map: mapped,
        ...(everyHost && { everyHost }),
        ...(ownHost && { ownHost }),
        ...(ownState && { ownState }),
      };
      add(declared.routes, route, `a route of ${topic.name}`);
    },
    effect(type, handler, options) {
      const guarded: EffectRegistration['handler'] = (params, effect) => {
        if (failure) throw failure();
        if (started) return handler(params, effect, started.value);
        return starting.promise.then((value) => handler(params, effect, value));
      };
      add(declared.effects, { ...options, type, handler: guarded }, `effect ${type}`);
    },
    http: (options, build) =>
      add(
        declared.surfaces,
        { options, build: (surface) => build(surface, startedValue()) },
        `surface ${options.name}`,
      ),
    listener(
      nameOrListener: string | Listener,
      make?: (started: unknown) => Listener,
      declaration: ListenerDeclaration = {},
    ) {
      if (typeof nameOrListener === 'object') {
        add(declared.listeners, nameOrListener, `listener ${nameOrListener.name}`);
      } else if (make) {
        const later = madeLater(nameOrListener, () => make(startedValue()), declaration);
        add(declared.listeners, later, `listener ${nameOrListener}`);
      }
    },
    control: (build, options) =>
      add(
        declared.controls,
        { build: (surface) => build(surface, startedValue()), ...placed(options) },
        'routes on the control socket',
      ),
    command: (command) => add(declared.commands, command, `command ${command.name}`),
    check: (check) => add(declared.checks, check, `check ${check.name}`),
    health: (name, report, stopped) =>
      add(
        declared.health,
        { name, report: () => report(startedValue()), ...(stopped && { stopped }) },
        `health fact ${name}`,
      ),
    schedule(cron, topic, options) {
      refuseLate(`a schedule of ${topic.name}`);
      new Cron(cron, { paused: true }).stop(); // throws here, with the plugin's name, instead of at its first time
      add(declared.schedules, { cron, topic, ...placed(options) }, `a schedule of ${topic.name}`);
    },
    overwrites: (path) => add(declared.overwrittenFiles, { path }, `the file ${path}`),
    onReady: (work) => add(declared.readyWork, { work: () => work(startedValue()) }, 'work when ready'),
    // A start that threw left nothing that could be handed over to be stopped.
    onStop: (work) =>
      add(
        declared.stopWork,
        { work: (reason) => (started ? work(started.value, reason) : undefined) },
        'work at stop',
      ),
  };

  return {
    context,
    declared,
    freeze() {
      frozen = true;
    },
    started(value) {
      started = { value };
      starting.resolve(value);
    },
    failed(error) {
      failure = () => error;
      starting.reject(error);
    },
    stopped(reason) {
      failure = reason;
      isStopped = true;
      started = undefined;
      container.forget(definition);
    },
    restarting() {
      starting = unheard();
      failure = undefined;
      isStopped = false;
      started = undefined;
    },
  };
}

/** An effect that waits for it fails; without one, nobody has to know that it was rejected. */
function unheard(): PromiseWithResolvers<unknown> {
  const one = Promise.withResolvers<unknown>();
  one.promise.catch(() => {});
  return one;
}

/** A listener of which only the name is known before it is to listen. */
function madeLater(name: string, make: () => Listener, declaration: ListenerDeclaration): Listener {
  let made: Listener | undefined;
  return {
    ...declaration,
    name,
    async listen(of) {
      made = make();
      return made.listen(of);
    },
    async close(deadlineMs) {
      await made?.close(deadlineMs);
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
    contributions: [],
    overwrittenFiles: [],
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
    ...(definition.singleton !== undefined && { singleton: definition.singleton }),
  });
}
