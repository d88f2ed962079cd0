import type { Logger } from 'pino';
import type { AnyStateMachine } from 'xstate';
import type { z } from 'zod';
import type { Bus, Envelope } from '../../../bus/bus.ts';
import type { Topic } from '../../../bus/topic.ts';
import type { Token } from '../../contracts/token.ts';
import type { ActorDefinition } from '../../kernel/actors/definition.ts';
import type { EffectHandler, EffectOptions } from '../../kernel/actors/effect.ts';
import type { Route, RouteTarget } from '../../kernel/actors/route.ts';
import type { ActorState } from '../../kernel/actors/state.ts';
import type { ActorSystem } from '../../kernel/actors/system.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { ErrorTable } from '../../kernel/errors/holdfast-error.ts';
import type { Json } from '../../kernel/json.ts';
import type { EventLog } from '../../kernel/log/event-log.ts';
import type { HttpSurface, Listener, SurfaceOptions } from '../http/contract.ts';
import type { Exchanges } from '../http/exchanges.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Vault } from '../secrets/vault.ts';
import type { CommandDefinition } from './command.ts';
import type { CheckDefinition } from './diagnosis.ts';

/** The configuration file of a running instance, for plugins that take changes up without a restart. */
export interface OptionsFile {
  /** Absolute path. */
  readonly file: string;
  /**
   * Loads the file as it is now and validates it as a whole. The modules that it imports stay those of this process.
   *
   * @returns the options of one plugin; undefined when the file does not list it any more
   * @throws HF_CONFIG_*
   */
  optionsOf(plugin: string): Promise<Readonly<Record<string, unknown>> | undefined>;
  /**
   * Calls back some time after the file's content has changed.
   *
   * @param failed told when the folder can't be watched (any more)
   * @returns ends it
   */
  watch(changed: () => void, failed: (error: unknown) => void): () => void;
}

/** What a plugin may use once the runtime starts; nothing of it works before. */
export interface Services {
  readonly bus: Bus;
  readonly actors: ActorSystem;
  readonly log: EventLog;
  /** HTTP requests that wait for a machine's `http.reply`. */
  readonly exchanges: Exchanges;
  readonly vault: Vault;
  readonly clock: Clock;
  readonly metrics: Metrics;
  /** Pino, already bound to the plugin's name. */
  readonly logger: Logger;
  /** Absolute path of the data folder. */
  readonly dataDir: string;
  /** The configuration file, where there is one: a program that embeds the runtime may have none. */
  readonly configFile?: OptionsFile | undefined;
  /** What every plugin is doing, for health pages. */
  readonly plugins: () => readonly PluginStatus[];
  /** What plugins contribute to health pages, by name. */
  readonly health: () => Readonly<Record<string, Json>>;
  /** @throws HF_PLUGIN_CONTRACT the plugin lists the token neither in `requires` nor in `provides` */
  readonly get: <T>(token: Token<T>) => T;
  /**
   * What somebody provides for a token of `wants`; undefined when nobody does, or its plugin failed.
   *
   * @throws HF_PLUGIN_CONTRACT the plugin does not list the token
   */
  readonly find: <T>(token: Token<T>) => T | undefined;
}

/** What a plugin reports of itself when asked; cheap, for it runs at every request of a health page. */
export type HealthReport = () => Json | undefined;

/**
 * The same fact of an instance that does not run, from the states that its log left.
 *
 * @param now epoch milliseconds
 */
export type StoppedReport = (
  states: ReadonlyMap<string, Readonly<ActorState>>,
  now: number,
) => Json | undefined;

export interface PluginStatus {
  readonly name: string;
  readonly state: 'registered' | 'started' | 'failed' | 'stopped';
  /** Why it failed. */
  readonly reason?: string;
  /** How long its start took. */
  readonly startMs?: number;
}

/**
 * The one way in which a plugin says what it brings. Everything here only declares: handlers and factories are
 * called after boot, and `services` may be used inside them, never in `register` itself.
 */
export interface PluginContext {
  /** @throws HF_PLUGIN_EARLY before the plugin starts */
  readonly services: Services;
  /**
   * Provides a token that the definition lists in `provides`; the factory runs once, when first needed, at the
   * latest after the plugin's start work.
   */
  provide<T>(token: Token<T>, factory: () => T): void;
  actor(definition: ActorDefinition): void;
  /**
   * Messages of a topic become events of actors; the compiler checks them against the machine.
   *
   * @param map the events that a message turns into, none when it concerns no actor; pure and cheap, for it runs on the
   * publisher's turn
   */
  route<T, M extends AnyStateMachine, const R extends readonly RouteTarget<M>[]>(
    topic: Topic<T>,
    actor: ActorDefinition<M>,
    map: (envelope: Envelope<T>) => R,
  ): void;
  route<T>(route: Route<T>): void;
  effect<P>(type: string, handler: EffectHandler<P>, options: EffectOptions): void;
  /** A listener of its own; it starts after every `onStart` and drains before any `onStop`. */
  http(options: SurfaceOptions, build: (surface: HttpSurface) => void): void;
  /**
   * A listener of another protocol than HTTP, made by the plugin; it starts after the surfaces and drains with them.
   */
  listener(listener: Listener): void;
  /**
   * Routes on the data folder's control socket, by which commands write through the running instance. Only the user
   * that runs it can connect. Paths begin with the plugin's name, e.g. `/router/simulate`.
   */
  control(build: (surface: HttpSurface) => void): void;
  command(command: CommandDefinition): void;
  /** Publishes an empty message on `topic` at each time of a cron pattern (croner's syntax, UTC). */
  schedule(cron: string, topic: Topic<Record<string, never>>): void;
  /**
   * Work at start, in the order declared, 10 s for all of it. The signal is aborted when that time is over, and
   * when the runtime stops meanwhile.
   */
  onStart(work: (signal: AbortSignal) => void | Promise<void>): void;
  /**
   * Called once, when everything listens and the instance is ready; nobody waits for it. What would make the start
   * longer and need not be there for it begins here.
   */
  onReady(work: () => void): void;
  /**
   * Work at stop, in reverse order, 10 s for all of it. It also runs after a start that failed half-way or came
   * too late, so it must cope with what was not started.
   */
  onStop(work: (reason: string) => void | Promise<void>): void;
  /**
   * A fact for `GET /healthz`, under a name of its own, e.g. the pending transaction. Read at each request and
   * redacted; `undefined` leaves the name out. One that says `ok: false` makes the whole `degraded`. `holdfast status`
   * shows its `text`, where it has one, else its fields.
   *
   * @param stopped the same fact for `holdfast status` and checks while the instance does not run
   */
  health(name: string, report: HealthReport, stopped?: StoppedReport): void;
  /** Something for `holdfast doctor` to look at, from outside, whether the runtime runs or not. */
  check(check: CheckDefinition): void;
}

/** What happens to the rest when this plugin fails to start. */
export type OnFailure = 'abort' | 'continue';

/** A plugin for people: in `holdfast --help` and in the table of docs/architecture.md. */
export interface PluginAbout {
  /** What of an operator's it belongs to, e.g. `Router`: plugins of one area stand together in help. */
  readonly area: string;
  /** What it is for, without a full stop. */
  readonly what: string;
  /** Where it is described, below `docs/`. */
  readonly docs: string;
}

export interface PluginDefinition<O extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly about?: PluginAbout;
  /** Strict zod object; every option has a default or is required, and a misspelt one is refused by name. */
  readonly options: O;
  /** Environment variables that override options: name to option path, e.g. `HOLDFAST_ROUTER_PORT: 'port'`. */
  readonly env?: Readonly<Record<string, string>>;
  readonly requires?: readonly Token<unknown>[];
  /** Used where some plugin provides them, which then starts first; done without otherwise. */
  readonly wants?: readonly Token<unknown>[];
  readonly provides?: readonly Token<unknown>[];
  readonly onFailure?: OnFailure;
  /** Its classes of errors (`defineErrors`): their codes begin with `HF_` and the plugin's name. */
  readonly errors?: PluginErrors | readonly PluginErrors[];
  readonly register: (context: PluginContext, options: z.output<O>) => void;
}

/** A class of errors, as a definition lists it. */
export interface PluginErrors {
  readonly table: ErrorTable;
}

/** The tables of a plugin's errors. */
export function errorTablesOf({ errors = [] }: PluginDefinition): readonly ErrorTable[] {
  return ('table' in errors ? [errors] : errors).map(({ table }) => table);
}

/** A plugin with the options that `plugins.config.ts` gives it. */
export interface PluginEntry {
  readonly definition: PluginDefinition;
  readonly options: unknown;
}

/** A plugin with options that its schema has accepted, defaults and environment included: ready for the host. */
export interface ConfiguredPlugin {
  readonly definition: PluginDefinition;
  readonly options: Record<string, unknown>;
}

/** A defined plugin: call it with its options inside `defineConfig({ plugins: [...] })`. */
export type Plugin<O extends z.ZodObject> = ((options?: z.input<O>) => PluginEntry) & {
  readonly definition: PluginDefinition<O>;
};

/**
 * Defines a plugin (C11).
 *
 * @example
 * export const heartbeat = definePlugin({
 *   name: 'heartbeat',
 *   options: z.strictObject({ cron: z.string().default('* * * * *') }),
 *   register(ctx, options) {
 *     ctx.schedule(options.cron, beat);
 *   },
 * });
 */
export function definePlugin<O extends z.ZodObject>(definition: PluginDefinition<O>): Plugin<O> {
  const plugin = (options?: z.input<O>): PluginEntry => ({
    definition: definition as unknown as PluginDefinition,
    options: options ?? {},
  });
  return Object.assign(plugin, { definition });
}
