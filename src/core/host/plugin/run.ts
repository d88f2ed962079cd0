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

/** One start of a plugin, and the stop that belongs to it. */
class Attempt {
  readonly abort = new AbortController();
  readonly starting: Promise<{ readonly value: unknown }>;
  /** What its `start` returned. */
  started: { readonly value: unknown } | undefined;
  isStarting = true;
  startMs: number | undefined;
  stopWork: Promise<void> | undefined;

  constructor(start: (signal: AbortSignal) => Promise<unknown>) {
    this.starting = start(this.abort.signal)
      .then((value) => {
        this.started = { value };
        return this.started;
      })
      .finally(() => {
        this.isStarting = false;
      });
  }
}

/**
 * One plugin of one runtime, from `register` to `stop`. The host decides when; this keeps its state and errors. A plugin of a
 * singleton waits, starts and stops any number of times between.
 */
export class PluginRun {
  readonly definition: PluginDefinition;
  readonly #registrar: Registrar;
  readonly #options: Record<string, unknown>;
  readonly #container: Container;
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  #attempt: Attempt | undefined;
  #state: PluginStatus['state'] = 'registered';
  /** Why it waits. */
  #elsewhere: (() => string) | undefined;
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
    const startMs = this.#attempt?.startMs;
    const reason = this.#state === 'waiting' ? this.#elsewhere?.() : this.#error?.message;
    return {
      name: this.name,
      state: this.#state,
      ...(reason !== undefined && { reason }),
      ...(startMs !== undefined && { startMs }),
    };
  }

  /** Whether it belongs to this host, with its options. */
  get isHostBound(): boolean {
    const { hostBound = false } = this.definition;
    return typeof hostBound === 'boolean' ? hostBound : hostBound(this.#options);
  }

  /** Whether others can use what it provides: it has not failed, and is not on another host. */
  get isUsable(): boolean {
    return !this.#error && this.#state !== 'waiting';
  }

  /** The key that it brings for fingerprints. @throws what reading it throws */
  fingerprintKey(): Uint8Array | undefined {
    return this.definition.fingerprintKey?.(this.#options);
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
    const started = this.#attempt?.started;
    if (this.#state !== 'started' || !started) return [];
    const { declared } = plugin ? redeclared(plugin, started.value) : this.#registrar;
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
    // Two of them at once would undo each other's work. One that hangs is stopped when it ends.
    if (this.#attempt && !this.#attempt.stopWork) {
      throw this.fail('start', new Error('an earlier start of it still hangs'));
    }
    await this.#attempt?.stopWork?.catch(() => {});
    if (this.#elsewhere) this.#registrar.restarting();
    this.#error = undefined;
    const began = this.#clock.monotonic();
    const attempt = new Attempt((signal) => this.#start(services, signal));
    this.#attempt = attempt;
    try {
      await this.#inTime('start', attempt.starting);
      this.#state = 'started';
    } catch (error) {
      attempt.abort.abort(error);
      throw this.fail('start', error);
    } finally {
      attempt.startMs = Math.round(this.#clock.monotonic() - began);
    }
  }

  /** Tells a `start` that still runs that nobody waits for it any more. */
  interrupt(): void {
    this.#attempt?.abort.abort();
  }

  /** Resolves when its `start` has ended, well or not, however long past its deadline. */
  async startEnded(): Promise<void> {
    await this.#attempt?.starting.catch(() => {});
  }

  /**
   * Runs the stop work once for each start, in reverse; a throw of one does not keep the others from running. Does nothing for a
   * plugin that never began to start, nor while its `start` hangs past the deadline: it is stopped when that ends.
   *
   * @param reason handed to the stop work
   * @throws HF_PLUGIN_DEADLINE, HF_PLUGIN_FAILED
   */
  async stop(reason: string): Promise<void> {
    const attempt = this.#attempt;
    if (!attempt || attempt.isStarting) return;
    attempt.stopWork ??= this.#stop(reason);
    await attempt.stopWork;
  }

  /**
   * Except between a start and its stop, its work is on another host. Whoever asks something of its handlers hears that.
   *
   * @param where says so, e.g. `it runs on b`
   */
  wait(where: () => string): void {
    this.#elsewhere = where;
    this.#state = 'waiting';
    this.#registrar.stopped(() => this.elsewhere());
  }

  /** That it is on another host, as an answer to whoever wants something of it. */
  elsewhere(): HoldfastError {
    const where = this.#elsewhere?.() ?? 'it has not been started';
    return new HostError('HF_PLUGIN_ELSEWHERE', { what: `Plugin ${this.name}`, where });
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

  async #start(services: Services, signal: AbortSignal): Promise<unknown> {
    const { start } = this.definition;
    const started = start ? await start(services, this.#options, signal) : services;
    this.#registrar.started(started);
    for (const token of this.definition.provides ?? []) services.get(token);
    return started;
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
      // That it failed to start here remains to be seen.
      if (this.#state === 'started') this.#state = this.#elsewhere ? 'waiting' : 'stopped';
      if (this.#elsewhere) this.#registrar.stopped(() => this.elsewhere());
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
