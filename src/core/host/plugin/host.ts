import { alertRaised } from '../../contracts/alerts.ts';
import { type Cluster, ClusterToken } from '../../contracts/cluster.ts';
import type { Contributed, ContributionPoint, Token } from '../../contracts/token.ts';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import type { Json } from '../../kernel/json.ts';
import { HostError } from '../errors/host-error.ts';
import { CORE, collect, findGap, refuseConflicts } from './collect.ts';
import { Container } from './container.ts';
import type { ConfiguredPlugin, PluginStatus, Services } from './definition.ts';
import { startOrder } from './order.ts';
import { summarise } from './registrar.ts';
import type { Placed, Registrations } from './registrations.ts';
import { bootReport } from './report.ts';
import { type Phase, PluginRun } from './run.ts';
import { movableSingletons, refuseUnmovable } from './singletons.ts';

/** The services that the runtime gives; the host adds the others, and binds the logger to each plugin. */
export type RuntimeServices = Omit<
  Services,
  'get' | 'find' | 'contributions' | 'declarations' | 'plugins' | 'health'
>;

export interface PluginHostOptions {
  readonly clock?: Clock;
  /** Milliseconds that a plugin has for its start, and again for its stop. */
  readonly deadlineMs?: number;
}

const DEADLINE_MS = 10_000;

/**
 * Registers, starts and stops the plugins of one runtime (C11, C12). `register` may be used
 * without ever starting.
 *
 * A plugin that fails with `onFailure: 'continue'` is marked, and those that require its tokens fail with it; the
 * rest run. One with `'abort'` stops everything that had started.
 */
export class PluginHost {
  /** In start order. */
  readonly #runs: readonly PluginRun[];
  readonly #providers = new Map<string, PluginRun>();
  /** The plugins of each singleton that can be on another host; none without a cluster. */
  #movable: ReadonlyMap<string, readonly PluginRun[]> = new Map();
  readonly #container = new Container();
  readonly #clock: Clock;
  readonly #stopFailures = new Map<PluginRun, HoldfastError>();
  #registrations: Registrations | undefined;
  readonly #coreFacts = new Map<string, () => Json>();
  #services: RuntimeServices | undefined;
  #starting: Promise<void> | undefined;
  #current: PluginRun | undefined;
  #startMs = 0;
  #stopping: Promise<readonly HoldfastError[]> | undefined;

  /** @throws HF_PLUGIN_MISSING, HF_PLUGIN_CONFLICT, HF_PLUGIN_CYCLE the plugins cannot be brought into order */
  constructor(plugins: readonly ConfiguredPlugin[], options: PluginHostOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    const deadlineMs = options.deadlineMs ?? DEADLINE_MS;
    const configured = new Map(plugins.map((plugin) => [plugin.definition, plugin]));
    const twice = plugins.find((plugin) => configured.get(plugin.definition) !== plugin)?.definition.name;
    if (twice !== undefined) {
      throw new HostError('HF_PLUGIN_CONFLICT', { what: `Plugin ${twice}`, first: twice, second: twice });
    }
    this.#runs = startOrder([...configured.keys()]).map((definition) => {
      const { options } = configured.get(definition) as ConfiguredPlugin;
      return new PluginRun({ definition, options }, this.#container, this.#clock, deadlineMs);
    });
    for (const run of this.#runs) {
      for (const token of run.definition.provides ?? []) this.#providers.set(token.name, run);
    }
  }

  /** Whether a plugin is listed that makes several hosts one system. */
  get isClustered(): boolean {
    return this.#providers.has(ClusterToken.name);
  }

  /**
   * The key for fingerprints that a plugin brings.
   *
   * @throws HF_PLUGIN_CONFLICT two plugins bring one; HF_CONFIG_SECRET_* it cannot be read
   */
  fingerprintKey(): Uint8Array | undefined {
    const [first, second] = this.#runs.filter(({ definition }) => definition.fingerprintKey !== undefined);
    if (first && second) {
      const both = { first: first.name, second: second.name };
      throw new HostError('HF_PLUGIN_CONFLICT', { what: 'The key for fingerprints', ...both });
    }
    return first?.fingerprintKey();
  }

  /** The other hosts, once the plugin that knows them has started. */
  cluster(): Cluster | undefined {
    if (this.#providers.get(ClusterToken.name)?.status.state !== 'started') return undefined;
    return this.#container.get({ name: CORE, requires: [ClusterToken] }, ClusterToken);
  }

  /** The singletons that can be on another host, each with the names of its plugins in start order. */
  movable(): ReadonlyMap<string, readonly string[]> {
    this.register();
    return new Map([...this.#movable].map(([singleton, runs]) => [singleton, runs.map(({ name }) => name)]));
  }

  /**
   * Lets every plugin declare, checks all declarations as a whole, and freezes them.
   *
   * @throws HF_PLUGIN_CONFLICT two plugins declare the same
   * @throws HF_PLUGIN_FAILED, HF_PLUGIN_CONTRACT, HF_ACTOR_BATCHED, HF_EFFECT_UNHANDLED, HF_ROUTE_TARGET of a plugin that must not fail
   */
  register(): Registrations {
    if (this.#registrations) return this.#registrations;
    this.#registrations = this.#register();
    if (this.isClustered) this.#movable = movableSingletons(this.#runs);
    return this.#registrations;
  }

  /**
   * Starts the plugins in order, each after those it requires; those of a singleton that can be on another host wait.
   *
   * @throws HF_PLUGIN_DEADLINE, HF_PLUGIN_FAILED a plugin that must not fail did; what had started is stopped
   * @throws HF_PLUGIN_INTERRUPTED `stop` was called meanwhile
   */
  start(services: RuntimeServices): Promise<void> {
    this.#starting ??= this.#start(services);
    return this.#starting;
  }

  /**
   * Stops what has started, in reverse order. Neither a failure nor a deadline of one keeps the others from it.
   *
   * @param reason handed to every plugin's stop work, e.g. the name of a signal
   * @returns what went wrong, for the log and the exit code
   */
  stop(reason: string): Promise<readonly HoldfastError[]> {
    this.#stopping ??= this.#stop(reason);
    return this.#stopping;
  }

  /**
   * Starts the plugins of a singleton in order. When one fails, those before it go on until `stopSingleton`.
   *
   * @throws HF_PLUGIN_DEADLINE, HF_PLUGIN_FAILED
   */
  async startSingleton(singleton: string): Promise<void> {
    const services = this.#services;
    if (!services) throw new Error('the plugins have not been started');
    for (const run of this.#movable.get(singleton) ?? []) {
      if (this.#stopping !== undefined) throw new HostError('HF_PLUGIN_INTERRUPTED');
      await this.#startOne(run, services);
    }
  }

  /** Tells a `start` of a singleton that is under way that nobody waits for it any more. */
  interruptSingleton(singleton: string): void {
    for (const run of this.#movable.get(singleton) ?? []) run.interrupt();
  }

  /** Stops the plugins of a singleton in reverse order; from then on they wait. Failures are logged. */
  async stopSingleton(singleton: string, reason: string): Promise<void> {
    for (const run of (this.#movable.get(singleton) ?? []).toReversed()) {
      await this.#stopOne(run, reason);
    }
  }

  /** @returns what is answered for a part of a plugin that is on another host */
  elsewhere(plugin: string, singleton: string): HoldfastError {
    return new HostError('HF_PLUGIN_ELSEWHERE', {
      what: `Plugin ${plugin}`,
      where: this.#placeOf(singleton),
    });
  }

  /** @returns the declarations of plugins that have started, without those that can be on another host */
  alwaysHere<T>(declared: readonly Placed<T>[]): readonly Placed<T>[] {
    return this.started(declared).filter(
      ({ singleton }) => singleton === undefined || !this.#movable.has(singleton),
    );
  }

  /** @returns the declarations of plugins that have started: nothing listens or ticks for a plugin that failed */
  started<T extends { readonly owner: string }>(declared: readonly T[]): readonly T[] {
    const running = this.#runs.filter(({ status }) => status.state === 'started');
    const names = new Set(running.map(({ name }) => name));
    return declared.filter(({ owner }) => names.has(owner));
  }

  /**
   * Marks a plugin whose surface cannot be built or opened; the rest run without it.
   *
   * @throws the error itself when the plugin must not fail
   */
  surfaceFailed(plugin: string, error: unknown): void {
    const run = this.#runs.find(({ name }) => name === plugin);
    if (!run || run.onFailure === 'abort') throw error;
    this.#log(run, run.fail('start', error), 'plugin.failed');
  }

  /** What every plugin is doing, in start order. */
  status(): readonly PluginStatus[] {
    return this.#runs.map(({ status }) => status);
  }

  /** Adds a fact of core to health pages, under a name that no plugin takes. */
  addFact(name: string, report: () => Json): void {
    this.#coreFacts.set(name, report);
  }

  /** The facts that core and running plugins contribute to health pages; one whose report throws says so in its place. */
  health(): Readonly<Record<string, Json>> {
    const core = Array.from(this.#coreFacts, ([name, report]) => ({ name, report }));
    const facts = [...core, ...this.started(this.register().health)];
    return Object.fromEntries(
      facts.flatMap(({ name, report }) => {
        const fact = attempt(report);
        if ('error' in fact) return [[name, { error: String(fact.error) }]];
        return fact.value === undefined ? [] : [[name, fact.value]];
      }),
    );
  }

  /** How the start went, as lines of a tree: each plugin under the last one it had to wait for. */
  report(): string[] {
    return bootReport(
      this.#runs.map(({ definition }) => summarise(definition)),
      this.status(),
      this.#startMs,
    );
  }

  #register(): Registrations {
    for (const run of this.#runs) {
      const lost = this.#lostProvider(run, 'register');
      const registered = lost ? { error: lost } : attempt(() => run.register());
      if ('error' in registered) this.#fail(run, 'register', registered.error);
    }
    for (;;) {
      const registrations = collect(this.#runs);
      refuseConflicts(registrations);
      const gap = findGap(registrations);
      if (!gap) {
        refuseUnmovable(this.#runs.filter(({ error }) => !error));
        return registrations;
      }
      for (const run of this.#runs) {
        if (run.error) continue;
        const error = run.name === gap.plugin ? gap.error : this.#lostProvider(run, 'register');
        if (error) this.#fail(run, 'register', error);
      }
    }
  }

  async #start(services: RuntimeServices): Promise<void> {
    this.register();
    this.#services = services;
    const began = this.#clock.monotonic();
    for (const run of this.#runs) if (run.error) this.#log(run, run.error, 'plugin.failed');
    for (const [singleton, runs] of this.#movable) for (const run of runs) this.#wait(run, singleton);
    for (const run of this.#runs) {
      if (this.#stopping !== undefined) break;
      if (run.error || run.status.state === 'waiting') continue;
      await this.#startFirst(run, services);
    }
    this.#startMs = Math.round(this.#clock.monotonic() - began);
    if (this.#stopping !== undefined) throw new HostError('HF_PLUGIN_INTERRUPTED');
    const own = this.cluster()?.host;
    const host: Readonly<Record<string, string>> = own === undefined ? {} : { host: own };
    for (const { name, error } of this.#runs) {
      if (!error) continue;
      const alert = { name: 'plugin.failed', severity: 'warning', text: error.message } as const;
      services.bus.publish(alertRaised, { ...alert, labels: { plugin: name, code: error.code, ...host } });
    }
  }

  /** At the start of the runtime: the rest goes on without a plugin that may fail. */
  async #startFirst(run: PluginRun, services: RuntimeServices): Promise<void> {
    this.#current = run;
    try {
      await this.#startOne(run, services);
    } catch (error) {
      if (this.#stopping !== undefined || run.onFailure === 'continue') return;
      await this.#stopAll(`start of ${run.name} failed`);
      throw error;
    } finally {
      this.#current = undefined;
    }
  }

  /** @throws what the start threw; what there is of the plugin is then stopped */
  async #startOne(run: PluginRun, services: RuntimeServices): Promise<void> {
    try {
      const lost = this.#lostProvider(run, 'start');
      if (lost) throw lost;
      await run.start(this.#servicesOf(run, services));
      services.logger.info({ plugin: run.name, ms: run.status.startMs }, 'plugin.started');
    } catch (error) {
      const failure = run.fail('start', error);
      await this.#stopOne(run, failure.what);
      // A `start` that overran its deadline may still end, and what it then holds must be stopped, too.
      void run.startEnded().then(() => this.#stopOne(run, failure.what));
      if (this.#stopping === undefined) this.#log(run, failure, 'plugin.failed');
      throw failure;
    }
  }

  #wait(run: PluginRun, singleton: string): void {
    run.wait(() => this.#placeOf(singleton));
  }

  #placeOf(singleton: string): string {
    const cluster = this.cluster();
    const holder = cluster?.holderOf(singleton);
    // A host that is cut off knows only who held it last; and while it waits here, this one does not run it.
    if (cluster && (cluster.standing().isIsolated || holder === cluster.host)) {
      return 'which host runs it is unknown here now';
    }
    return holder === undefined ? 'no host runs it now' : `it runs on ${holder}`;
  }

  async #stop(reason: string): Promise<readonly HoldfastError[]> {
    this.#current?.interrupt();
    await this.#starting?.catch(() => {});
    await this.#stopAll(reason);
    return [...this.#stopFailures.values()];
  }

  async #stopAll(reason: string): Promise<void> {
    for (const run of this.#runs.toReversed()) await this.#stopOne(run, reason);
  }

  async #stopOne(run: PluginRun, reason: string): Promise<void> {
    try {
      await run.stop(reason);
    } catch (error) {
      const failure = error as HoldfastError;
      if (!this.#stopFailures.has(run)) this.#log(run, failure, 'plugin.stop_failed');
      this.#stopFailures.set(run, failure);
    } finally {
      this.#services?.bus.release(run.name);
    }
  }

  /** Marks a plugin as failed, and ends the boot when it must not fail. */
  #fail(run: PluginRun, phase: Phase, error: unknown): void {
    const failure = run.fail(phase, error);
    if (run.onFailure === 'abort') throw failure;
  }

  /** Why a plugin cannot go on, when one that provides what it requires has failed. */
  #lostProvider(run: PluginRun, phase: Phase): HoldfastError | undefined {
    for (const { name: token } of run.definition.requires ?? []) {
      const provider = this.#providers.get(token);
      if (!provider?.error) continue;
      const reason = `it needs ${token}, and ${provider.name} failed: ${provider.error.what.replace(/\.$/, '')}`;
      const details = { plugin: run.name, phase, reason };
      return new HostError('HF_PLUGIN_FAILED', details, { cause: provider.error });
    }
    return undefined;
  }

  #servicesOf(run: PluginRun, services: RuntimeServices): Services {
    return Object.freeze({
      ...services,
      logger: services.logger.child({ plugin: run.name }),
      plugins: () => this.status(),
      health: () => this.health(),
      declarations: () => this.register(),
      get: <T>(token: Token<T>) => this.#container.get(run.definition, token),
      find: <T>(token: Token<T>) => {
        const provider = this.#providers.get(token.name);
        return provider?.isUsable ? this.#container.get(run.definition, token) : undefined;
      },
      contributions: <T>(point: ContributionPoint<T>, plugins?: readonly ConfiguredPlugin[]) =>
        this.#contributions(run, point, plugins),
    });
  }

  #contributions<T>(
    { name, definition }: PluginRun,
    point: ContributionPoint<T>,
    plugins?: readonly ConfiguredPlugin[],
  ): readonly Contributed<T>[] {
    if (!definition.collects?.some((collected) => collected.name === point.name)) {
      const reason = `it reads contributions to ${point.name} without listing it in collects`;
      throw new HostError('HF_PLUGIN_CONTRACT', { plugin: name, reason });
    }
    const changed = plugins && new Map(plugins.map((plugin) => [plugin.definition.name, plugin]));
    return this.#runs.flatMap((run) => {
      const plugin = changed?.get(run.name);
      // A point has one type: whoever contributes to it was checked against it by the compiler.
      return changed && !plugin ? [] : (run.contributions(point.name, plugin) as readonly Contributed<T>[]);
    });
  }

  #log({ name }: PluginRun, { code, what, remedy }: HoldfastError, event: string): void {
    this.#services?.logger.error({ plugin: name, code, reason: what, remedy }, event);
  }
}

/** Runs some work, and gives what it returned or threw. */
function attempt<T>(work: () => T): { readonly value: T } | { readonly error: unknown } {
  try {
    return { value: work() };
  } catch (error) {
    return { error };
  }
}
