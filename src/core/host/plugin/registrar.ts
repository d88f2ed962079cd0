import { Cron } from 'croner';
import type { Envelope } from '../../../bus/bus.ts';
import type { Topic } from '../../../bus/topic.ts';
import type { ContributionPoint } from '../../contracts/token.ts';
import type { ActorDefinition, RouteTarget } from '../../kernel/actors/definition.ts';
import type { EffectRegistration } from '../../kernel/actors/effect.ts';
import { HostError } from '../errors/host-error.ts';
import type { Listener, ListenerDeclaration } from '../http/contract.ts';
import type { Container } from './container.ts';
import type { PluginContext, PluginDefinition } from './definition.ts';
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
}

/** Makes the context that a plugin's `register` is called with. It only collects; nothing runs. */
export function createRegistrar(definition: PluginDefinition, container: Container): Registrar {
  const plugin = definition.name;
  const declared = emptyDeclared();
  const starting = Promise.withResolvers<unknown>();
  starting.promise.catch(() => {}); // an effect that waits for it fails; without one, nobody has to know
  let frozen = false;
  let started: { readonly value: unknown } | undefined;
  let failure: Error | undefined;

  const refuseLate = (what: string): void => {
    if (frozen) throw new HostError('HF_PLUGIN_FROZEN', { plugin, what });
  };
  const add = <T extends object>(list: Owned<T>[], item: T, what: string): void => {
    refuseLate(what);
    list.push(Object.freeze({ ...item, owner: plugin }));
  };
  const startedValue = (): unknown => {
    if (!started) throw new HostError('HF_PLUGIN_EARLY', { plugin });
    return started.value;
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
    actor: (actor) => add(declared.actors, actor, `actor ${actor.type}`),
    route<T>(
      topic: Topic<T>,
      actor: ActorDefinition,
      map: (envelope: Envelope<T>, started: unknown) => readonly RouteTarget[],
    ) {
      // A map that takes the message alone serves those too that come while the plugin starts.
      const mapped = (envelope: Envelope<T>) => map(envelope, map.length > 1 ? startedValue() : undefined);
      add(declared.routes, { topic, to: actor.type, map: mapped }, `a route of ${topic.name}`);
    },
    effect(type, handler, options) {
      const guarded: EffectRegistration['handler'] = (params, effect) => {
        if (failure) throw failure;
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
    control: (build) =>
      add(
        declared.controls,
        { build: (surface) => build(surface, startedValue()) },
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
    schedule(cron, topic) {
      refuseLate(`a schedule of ${topic.name}`);
      new Cron(cron, { paused: true }).stop(); // throws here, with the plugin's name, instead of at its first time
      add(declared.schedules, { cron, topic }, `a schedule of ${topic.name}`);
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
      failure = error;
      starting.reject(error);
    },
  };
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
  });
}
