import { getCallSites } from 'node:util';
import type { Logger } from 'pino';
import type { AnyStateMachine } from 'xstate';
import type { z } from 'zod';
import type { Bus, Envelope } from '../../../bus/bus.ts';
import type { Topic } from '../../../bus/topic.ts';
import type { Contributed, ContributionPoint, Token } from '../../contracts/token.ts';
import type { ActorDefinition, RouteTarget } from '../../kernel/actors/definition.ts';
import type { EffectHandler, EffectOptions } from '../../kernel/actors/effect.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { ErrorTable } from '../../kernel/errors/holdfast-error.ts';
import type { Json } from '../../kernel/json.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import type { HttpSurface, Listener, ListenerDeclaration, Place, SurfaceOptions } from '../http/contract.ts';
import type { PendingReplies } from '../http/pending-replies.ts';
import { declareSecretFields, type SecretFields } from '../logging/secret-fields.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Vault } from '../secrets/vault.ts';
import type { CommandDefinition } from './command.ts';
import type { CheckDefinition } from './diagnosis.ts';
import type { Registrations } from './registrations.ts';

/** The configuration file of a running instance, for plugins that take changes up without a restart. */
export interface OptionsFile {
  /** Absolute path. */
  readonly file: string;
  /**
   * Loads the file as it is now and validates it as a whole. The modules that it imports stay those of this process.
   *
   * @returns the plugins that it lists now, with their options
   * @throws HF_CONFIG_*
   */
  plugins(): Promise<readonly ConfiguredPlugin[]>;
  /**
   * Calls back some time after the file's content has changed.
   *
   * @param failed told when the folder can't be watched (any more)
   * @returns ends it
   */
  watch(changed: () => void, failed: (error: unknown) => void): () => void;
}

/** What a plugin may use once the runtime starts; nothing of it works before. @public */
export interface Services {
  readonly bus: Bus;
  readonly actors: ActorSystem;
  readonly log: EventLog;
  /** The replies of machines (`http.reply`) that HTTP requests wait for. */
  readonly pendingReplies: PendingReplies;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Pino, already bound to the plugin's name. */
  readonly logger: Logger;
  /** Absolute path of the data folder. */
  readonly dataDir: string;
  /** The configuration file, where there is one: a program that embeds the runtime may have none. */
  readonly configFile?: OptionsFile | undefined;
  /** Where each surface listens, by its name; empty until the surfaces listen, which is after every plugin has started. */
  readonly surfaces: () => Readonly<Record<string, Place>>;
  /** What every plugin is doing, for health pages. */
  readonly plugins: () => readonly PluginStatus[];
  /** What plugins contribute to health pages, by name. */
  readonly health: () => Readonly<Record<string, Json>>;
  /** What all plugins declare, for those that read what others left in the log. */
  readonly declarations: () => Registrations;
  /** @throws HF_PLUGIN_CONTRACT the plugin lists the token neither in `requires` nor in `provides` */
  readonly get: <T>(token: Token<T>) => T;
  /**
   * What somebody provides for a token of `wants`; undefined when nobody does, or its plugin failed.
   *
   * @throws HF_PLUGIN_CONTRACT the plugin does not list the token
   */
  readonly find: <T>(token: Token<T>) => T | undefined;
  /**
   * What plugins that have started contribute to a point of `collects`, in start order.
   *
   * @param plugins as a changed configuration file lists them: what they contribute with these options. One that has not
   * been started contributes nothing
   * @throws HF_PLUGIN_CONTRACT the plugin does not list the point; what a `register` throws with such options
   */
  readonly contributions: <T>(
    point: ContributionPoint<T>,
    plugins?: readonly ConfiguredPlugin[],
  ) => readonly Contributed<T>[];
}

/** How messages find their way along a route. @public */
export interface RouteOptions {
  /**
   * In a cluster of several hosts, every host gives each message to its actors, whichever host it was published on, all in one
   * order that `envelope.order` tells. A message may come twice: the machine ignores an order that it has seen. A message with
   * bodies (`blobs`) never leaves its host, so it is refused. A host that joins, or was away for long, gets no old message: the
   * definition of the actors has a `hear`, or the plugin is refused (HF_PLUGIN_EVERY_HOST). Without a cluster the option changes
   * nothing (docs/cluster.md).
   */
  readonly everyHost?: boolean;
  /**
   * Of a route to actors of a singleton: takes the messages of the host that the singleton is on, and no others. For what every
   * host sees by itself, such as events of a device elsewhere; otherwise the messages of all hosts go to the holder. Alerts of
   * such actors are about that device, and name no host.
   */
  readonly ownHost?: boolean;
  /** The actors take the messages of all hosts and yet are each host's own: their alerts name the host. */
  readonly ownState?: boolean;
}

/** Where a part of a plugin is that runs on every host. @public */
export interface PlacementOptions {
  /**
   * The part is on one host of a cluster at a time: where the lease of this name is held, as `singleton` of a definition says.
   * It stays on its host where that would.
   */
  readonly singleton?: string;
}

/** What a plugin reports of itself when asked; cheap, for it runs at every request of a health page. */
export type HealthReport = () => Json | undefined;

/**
 * Reports the fact of an instance that does not run, from the states in its log.
 *
 * @param now epoch milliseconds
 */
export type StoppedReport = (
  states: ReadonlyMap<string, Readonly<ActorState>>,
  now: number,
) => Json | undefined;

/** Such facts by name. */
export type StoppedReports = Readonly<Record<string, StoppedReport>>;

export interface PluginStatus {
  readonly name: string;
  /** `waiting`: it belongs to a singleton, whose work is on another host. */
  readonly state: 'registered' | 'waiting' | 'started' | 'failed' | 'stopped';
  /** Why it failed, or where it runs instead. */
  readonly reason?: string;
  /** How long its start took. */
  readonly startMs?: number;
}

/**
 * The one way in which a plugin says what it brings. Everything here only declares: nothing is called before the plugin
 * has started. What its `start` returned is the last argument of every handler; without a `start`, the services are.
 *
 * @public
 */
export interface PluginContext<S = Services> {
  /** Provides a token that the definition lists in `provides`; the factory runs once, at its first use or right after the start. */
  provide<T>(token: Token<T>, factory: (started: S) => T): void;
  /**
   * Adds something to what another plugin looks after, e.g. a page to a console. Whether a plugin collects it depends
   * on the configuration; the order of the list does not matter.
   *
   * @param contribution what needs no running plugin, which commands over a log know, too; or a function that runs when it is
   * collected, which is after the start, and again when the configuration file has changed
   */
  contribute<T>(point: ContributionPoint<T>, contribution: T | ((started: S) => T)): void;
  actor(definition: ActorDefinition, options?: PlacementOptions): void;
  /**
   * Messages of a topic become events of actors; the compiler checks them against the machine.
   *
   * @param map the events that a message turns into, none when it concerns no actor; cheap, for it runs on the
   * publisher's turn
   */
  route<T, M extends AnyStateMachine, const R extends readonly RouteTarget<M>[]>(
    topic: Topic<T>,
    actor: ActorDefinition<M>,
    map: (envelope: Envelope<T>, started: S) => R,
    options?: RouteOptions,
  ): void;
  /** Carries out what machines ask for by that name. What is asked for while the plugin starts waits until it has. */
  effect<P>(type: string, handler: EffectHandler<P, S>, options: EffectOptions): void;
  /** A listener of its own; it starts after every plugin and drains before any stops. */
  http(options: SurfaceOptions, build: (surface: HttpSurface, started: S) => void): void;
  /** A listener of another protocol than HTTP; it starts after the surfaces and drains with them. */
  listener(listener: Listener): void;
  /** A listener that is made after the plugin has started. @param name in `runtime.json` */
  listener(name: string, make: (started: S) => Listener, declaration?: ListenerDeclaration): void;
  /**
   * Routes on the data folder's control socket, by which commands write through the running instance. Only the user
   * that runs it can connect. Paths begin with the plugin's name, e.g. `/lamp/on`.
   */
  control(build: (surface: HttpSurface, started: S) => void, options?: PlacementOptions): void;
  command(command: CommandDefinition): void;
  /** Publishes an empty message on `topic` at each time of a cron pattern (croner's syntax, UTC). */
  schedule(cron: string, topic: Topic<Record<string, never>>, options?: PlacementOptions): void;
  /**
   * Names a file of the data folder, relative to it, that the plugin or a library of it overwrites in place. The check of
   * the data folder takes such a change of any other file for damage; databases and appended files need no mention.
   */
  overwrites(path: string): void;
  /**
   * Called once, when everything listens and the instance is ready; nobody waits for it. What would make the start
   * longer and need not be there for it begins here.
   */
  onReady(work: (started: S) => void): void;
  /**
   * Work at stop, in reverse order, 10 s for all of it; also after a `start` that came too late. A `start` that throws
   * has nothing to stop: it cleans up itself.
   *
   * @param work its second argument says why the runtime stops, e.g. the name of a signal
   */
  onStop(work: (started: S, reason: string) => void | Promise<void>): void;
  /**
   * A fact for `GET /healthz`, under a name of its own, e.g. the pending transaction. Read at each request and
   * redacted; `undefined` leaves the name out. One that says `ok: false` makes the whole `degraded`; with
   * `ready: false` it says that calls should go to another host for now: `GET /readyz` answers 503 with its `reason`.
   * `holdfast status` shows its `text`, where it has one, else its fields.
   *
   * @param stopped the same fact for `holdfast status` and checks while the instance does not run. Of a plugin that the
   * program brings it stands in `stopped-reports.ts`, too, and is asked when the log holds actors of its feature.
   */
  health(name: string, report: (started: S) => Json | undefined, stopped?: StoppedReport): void;
  /** Something for `holdfast doctor` to look at, from outside, whether the runtime runs or not. */
  check(check: CheckDefinition): void;
}

/** What happens to the rest when this plugin fails to start. */
export type OnFailure = 'abort' | 'continue';

/** A plugin for people: in `holdfast --help` and in the table of docs/architecture.md. */
export interface PluginAbout {
  /** What of an operator's it belongs to, e.g. `Uptime and alerts`: plugins of one area stand together in help. */
  readonly area: string;
  /** What it is for, without a full stop. */
  readonly what: string;
  /** Where it is described, below `docs/`. */
  readonly docs: string;
}

/** What a plugin is: its name, its options, what it needs and provides, and what it declares. @public */
export interface PluginDefinition<O extends z.ZodObject = z.ZodObject, S = unknown> {
  readonly name: string;
  /** URL of the module that defines it; `definePlugin` notes it. */
  readonly file?: string;
  readonly about?: PluginAbout;
  /** Strict zod object; every option has a default or is required, and a misspelt one is refused by name. */
  readonly options: O;
  /** Environment variables that override options: name to option path, e.g. `HOLDFAST_CONSOLE_PORT: 'port'`. */
  readonly env?: Readonly<Record<string, string>>;
  /** What each variable that the plugin reads is for, as one sentence; those of `env` too. For docs/reference/variables.md. */
  readonly variables?: Readonly<Record<string, string>>;
  /**
   * What is secret in the plugin's documents: the redactor holds it back from the moment that the plugin is defined. Of a
   * plugin that the program brings, it stands in a `secret-fields.ts`, for commands that do not load the plugin.
   */
  readonly secretFields?: SecretFields;
  readonly requires?: readonly Token<unknown>[];
  /** Used where some plugin provides them, which then starts first; done without otherwise. */
  readonly wants?: readonly Token<unknown>[];
  readonly provides?: readonly Token<unknown>[];
  /** What it collects of other plugins' contributions: it starts after all plugins that collect nothing. */
  readonly collects?: readonly ContributionPoint<unknown>[];
  readonly onFailure?: OnFailure;
  /**
   * Work that one host of a cluster does at a time, by its name, e.g. `lamps`. Plugins of one name start, move and stop
   * together, where the lease of that name is held; elsewhere they wait, and their actors take no events. Without a cluster it
   * changes nothing. A plugin of a singleton has no surface or listener, and what it provides is for plugins of the same
   * singleton, or for those that want it and can do without.
   *
   * It is not moved where it belongs to its host: when it or another plugin of that singleton is bound to the host, or
   * requires or wants what a bound plugin provides. Then it runs on every host, as without a cluster (docs/cluster.md). A part of
   * a plugin that serves on every host stays only where the plugin is bound, or requires what a bound one provides.
   */
  readonly singleton?: string;
  /**
   * Whether it belongs to the host that it runs on, with these options: it keeps data there, or controls the machine. Who
   * requires what a bound plugin provides is bound, too.
   */
  readonly hostBound?: boolean | { bound(options: z.output<O>): boolean }['bound'];
  /**
   * The key by which fingerprints are made, 32 bytes, where several hosts make the same ones of the same secrets; at most one
   * plugin has one. Without it the data folder has a key of its own. What is sealed stays bound to the data folder.
   */
  fingerprintKey?(options: z.output<O>): Uint8Array;
  /** Its classes of errors (`defineErrors`): their codes begin with `HF_` and the plugin's name. */
  readonly errors?: PluginErrors | readonly PluginErrors[];
  /**
   * Makes what the handlers use; 10 s for it. Everything the plugin requires has started.
   *
   * @param signal aborted when that time is over, and when the runtime stops meanwhile
   * @returns the last argument of every handler that `register` declares
   */
  start?(services: Services, options: z.output<O>, signal: AbortSignal): S | Promise<S>;
  /** Declares what the plugin brings. */
  register(context: PluginContext<S>, options: z.output<O>): void;
}

/** A class of errors, as a definition lists it. */
export interface PluginErrors {
  readonly table: ErrorTable;
}

/** The tables of a plugin's errors. */
export function errorTablesOf({ errors = [] }: PluginDefinition): readonly ErrorTable[] {
  return ('table' in errors ? [errors] : errors).map(({ table }) => table);
}

/** A plugin with the options that `plugins.config.ts` gives it. @public */
export interface PluginEntry {
  readonly definition: PluginDefinition;
  readonly options: unknown;
}

/** A plugin with options that its schema has accepted, defaults and environment included: ready for the host. */
export interface ConfiguredPlugin {
  readonly definition: PluginDefinition;
  readonly options: Record<string, unknown>;
}

/** A defined plugin: call it with its options inside `defineConfig({ plugins: [...] })`. @public */
export type Plugin<O extends z.ZodObject> = ((options?: z.input<O>) => PluginEntry) & {
  readonly definition: PluginDefinition<O>;
};

/**
 * Defines a plugin (C11).
 *
 * @example
 * export const lamp = definePlugin({
 *   name: 'lamp',
 *   options: z.strictObject({ url: z.string() }),
 *   start: ({ clock }, { url }) => ({ client: new LampClient(url, clock) }),
 *   register(ctx) {
 *     ctx.effect('lamp.on', (lamp: Lamp, { signal }, { client }) => client.turnOn(lamp, signal), { onRecovery: 'retry' });
 *     ctx.onStop(({ client }) => client.close());
 *   },
 * });
 * @public
 */
export function definePlugin<O extends z.ZodObject, S = Services>(
  definition: PluginDefinition<O, S>,
): Plugin<O> {
  if (definition.secretFields) declareSecretFields(definition.secretFields);
  const noted = { file: getCallSites(2)[1]?.scriptName ?? '', ...definition };
  const plugin = (options?: z.input<O>): PluginEntry => ({ definition: noted, options: options ?? {} });
  return Object.assign(plugin, { definition: noted });
}
