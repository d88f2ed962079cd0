import type { Contributed } from '../../contracts/token.ts';
import type { Clock } from '../../kernel/clock.ts';
import { type HoldfastError, isCoded } from '../../kernel/errors/holdfast-error.ts';
import { withDeadline } from '../deadline.ts';
import { HostError } from '../errors/host-error.ts';
import { Container } from './container.ts';
import type { ConfiguredPlugin, OnFailure, PluginDefinition, PluginStatus, Services } from './definition.ts';
import { createRegistrar, type Declared, type Registrar } from './registrar.ts';

/** Codes whose errors name the plugin already; any other error is wrapped, so that plugin and phase are named. */
const NAMES_PLUGIN = /^HF_(PLUGIN_|ACTOR_BATCHED$|EFFECT_UNHANDLED$|ROUTE_TARGET$)/;

export type Phase = 'register' | 'start' | 'stop';

/** One plugin of one runtime, from `register` to `stop`. The host decides when; this keeps its state and errors. */
export class PluginRun {
  readonly definition: PluginDefinition;
  readonly #registrar: Registrar;
  readonly #options: Record<string, unknown>;
  readonly #container: Container;
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  readonly #abort = new AbortController();
  #starting: Promise<void> | undefined;
  #started: { readonly value: unknown } | undefined;
  #startRunning = false;
  #stopWork: Promise<void> | undefined;
  #state: PluginStatus['state'] = 'registered';
  #startMs: number | undefined;
  #error: HoldfastError | undefined;

  constructor(plugin: ConfiguredPlugin, container: Container, clock: Clock, deadlineMs: number) {
    this.definition = plugin.definition;
    this.#options = plugin.options;
    this.#container = container;
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
    this.#registrar = createRegistrar(plugin.definition, container);
  }

  get name(): string {
    return this.definition.name;
  }

  get onFailure(): OnFailure {
    return this.definition.onFailure ?? 'abort';
  }

  /** Why it does not work, once it has failed. */
  get error(): HoldfastError | undefined {
    return this.#error;
  }

  get status(): PluginStatus {
    return {
      name: this.name,
      state: this.#state,
      ...(this.#error && { reason: this.#error.message }),
      ...(this.#startMs !== undefined && { startMs: this.#startMs }),
    };
  }

  /** What it declared. Complete once `register` has returned. */
  get declared(): Declared {
    return this.#registrar.declared;
  }

  /**
   * What it contributes; nothing while it is not started.
   *
   * @param point name of the point
   * @param plugin as a changed configuration lists it: what it would contribute with these options
   */
  contributions(point: string, plugin?: ConfiguredPlugin): readonly Contributed<unknown>[] {
    if (this.#state !== 'started' || !this.#started) return [];
    const { declared } = plugin ? redeclared(plugin, this.#started.value) : this.#registrar;
    const options = plugin?.options ?? this.#options;
    return declared.contributions
      .filter((contribution) => contribution.point === point)
      .map(({ owner, make }) => ({ owner, options, value: make() }));
  }

  /**
   * Lets the plugin declare. Nothing runs.
   *
   * @throws HF_PLUGIN_FAILED `register` threw
   * @throws HF_PLUGIN_CONTRACT it is asynchronous, or a token of `provides` got no factory
   */
  register(): void {
    const { register, provides } = this.definition;
    try {
      const result: unknown = register(this.#registrar.context, this.#options);
      if (result instanceof Promise) {
        result.catch(() => {}); // its throw, if any, is not the point
        throw this.#breach('its register is asynchronous; asynchronous work belongs into start');
      }
      const missing = provides?.find((token) => !this.#container.has(token));
      if (missing) throw this.#breach(`it lists ${missing.name} in provides, but register gives no factory`);
    } catch (error) {
      throw this.fail('register', error);
    } finally {
      this.#registrar.freeze();
    }
  }

  /**
   * Runs its `start`, then makes what it provides, as far as that was not read before.
   *
   * @param services what its handlers and factories may use from now on
   * @throws HF_PLUGIN_DEADLINE, HF_PLUGIN_FAILED
   */
  async start(services: Services): Promise<void> {
    const began = this.#clock.monotonic();
    this.#startRunning = true;
    this.#starting = this.#start(services).finally(() => {
      this.#startRunning = false;
    });
    try {
      await this.#inTime('start', this.#starting);
      this.#state = 'started';
    } catch (error) {
      this.#abort.abort(error);
      throw this.fail('start', error);
    } finally {
      this.#startMs = Math.round(this.#clock.monotonic() - began);
    }
  }

  /** Tells a `start` that still runs that nobody waits for it any more. */
  interrupt(): void {
    this.#abort.abort();
  }

  /** Resolves when its `start` has ended, well or not, however long past its deadline. */
  async startEnded(): Promise<void> {
    await this.#starting?.catch(() => {});
  }

  /**
   * Runs the stop work once, in reverse; a throw of one does not keep the others from running. Does nothing for a
   * plugin that never began to start, nor while its `start` hangs past the deadline: it is stopped when that ends.
   *
   * @param reason handed to the stop work
   * @throws HF_PLUGIN_DEADLINE, HF_PLUGIN_FAILED
   */
  async stop(reason: string): Promise<void> {
    if (this.#starting === undefined || this.#startRunning) return;
    this.#stopWork ??= this.#stop(reason);
    await this.#stopWork;
  }

  /** Marks the plugin as failed and returns the coded error that says why. */
  fail(phase: Phase, error: unknown): HoldfastError {
    const coded = this.#coded(phase, error);
    this.#error ??= coded;
    if (phase !== 'stop') {
      this.#state = 'failed';
      this.#registrar.failed(this.#error);
    }
    return coded;
  }

  async #start(services: Services): Promise<void> {
    const { start } = this.definition;
    const started = start ? await start(services, this.#options, this.#abort.signal) : services;
    this.#registrar.started(started);
    this.#started = { value: started };
    for (const token of this.definition.provides ?? []) services.get(token);
  }

  async #stop(reason: string): Promise<void> {
    let failure: { error: unknown } | undefined;
    const work = async () => {
      for (const { work } of this.declared.stopWork.toReversed()) {
        try {
          await work(reason);
        } catch (error) {
          failure ??= { error };
        }
      }
    };
    try {
      await this.#inTime('stop', work());
      if (failure) throw failure.error;
    } catch (error) {
      throw this.fail('stop', error);
    } finally {
      if (this.#state === 'started') this.#state = 'stopped';
    }
  }

  #breach(reason: string): HoldfastError {
    return new HostError('HF_PLUGIN_CONTRACT', { plugin: this.name, reason });
  }

  /** The work goes on when it is late; its own promise says when it ends. */
  #inTime(phase: Phase, work: Promise<unknown>): Promise<unknown> {
    const { name: plugin } = this;
    const [clock, ms] = [this.#clock, this.#deadlineMs];
    const late = () => new HostError('HF_PLUGIN_DEADLINE', { plugin, phase, ms });
    return keptAlive(withDeadline({ clock, ms, late }, () => work));
  }

  #coded(phase: Phase, error: unknown): HoldfastError {
    if (isCoded(error) && NAMES_PLUGIN.test(error.code)) return error;
    const reason = reasonOf(error);
    return new HostError('HF_PLUGIN_FAILED', { plugin: this.name, phase, reason }, { cause: error });
  }
}

/** What a plugin declares with other options, its handlers bound to what its `start` returned with the first ones. */
function redeclared({ definition, options }: ConfiguredPlugin, started: unknown): Registrar {
  const registrar = createRegistrar(definition, new Container());
  definition.register(registrar.context, options);
  registrar.freeze();
  registrar.started(started);
  return registrar;
}

/** An error as part of a sentence; a coded one brings its remedy along. */
function reasonOf(error: unknown): string {
  if (isCoded(error)) return `${error.message} ${error.remedy}`.replace(/\.$/, '');
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\.$/, '') || 'no reason given';
}

/** A plugin may hold nothing that keeps the process alive, and a clock's timers do not: it would end before the deadline. */
async function keptAlive<T>(work: Promise<T>): Promise<T> {
  const alive = setInterval(() => {}, 2 ** 30);
  try {
    return await work;
  } finally {
    clearInterval(alive);
  }
}
