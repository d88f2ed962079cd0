import type { Clock } from '../clock.ts';
import { isCoded } from '../errors/holdfast-error.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { asEpochMs, asSeq, type EffectId, effectId, seqOfEffect } from '../ids.ts';
import { isObject } from '../json.ts';
import {
  type EffectRequest,
  type LogRecord,
  TIMER_CANCEL,
  TIMER_START,
  type TimerStart,
  timerCancelled,
  timerStarted,
} from '../log/record.ts';
import {
  EFFECT_DONE,
  EFFECT_FAILED,
  EFFECT_LOST,
  type EffectContext,
  type EffectHandler,
  type EffectOutcome,
  type EffectRegistration,
} from './effect.ts';
import type { ActorSystem, EffectRunner } from './system.ts';
import type { ActorState } from './transition.ts';

const DEFAULT_DEADLINE_MS = 30_000;

/** How an effect ended, for metrics and log lines. */
export interface EffectEnd {
  readonly type: string;
  readonly outcome: 'done' | 'failed' | 'lost';
  readonly id: EffectId;
  readonly actor: string;
  readonly error?: unknown;
}

interface RequestedEffect extends Omit<EffectContext, 'signal'> {
  readonly request: EffectRequest;
}

/**
 * Carries out the effects of records: timers itself, the others by the handlers that plugins registered. The effects of
 * one record run one after another, those of different records in parallel. Each has one outcome, which goes back to
 * the actor as an event with its cause.
 */
export class EffectDispatcher implements EffectRunner {
  readonly #actors: ActorSystem;
  readonly #clock: Clock;
  readonly #handlers: ReadonlyMap<string, EffectRegistration>;
  readonly #onEnd: (end: EffectEnd) => void;
  readonly #timers: Timers;
  readonly #stop = new AbortController();
  #running = 0;
  /** Resolves when no effect is under way any more; made when somebody waits for it. */
  #ended: PromiseWithResolvers<void> | undefined;

  constructor(
    actors: ActorSystem,
    clock: Clock,
    handlers: ReadonlyMap<string, EffectRegistration>,
    onEnd: (end: EffectEnd) => void,
  ) {
    this.#actors = actors;
    this.#clock = clock;
    this.#handlers = handlers;
    this.#onEnd = onEnd;
    this.#timers = new Timers(actors, clock);
  }

  /** How many records have effects under way. */
  get running(): number {
    return this.#running;
  }

  run(record: LogRecord): void {
    // Effects requested during a stop stay open in the log.
    if (this.#stop.signal.aborted) return;
    const { actor, correlation } = record;
    const cause = asSeq(record.seq);
    const at = asEpochMs(record.at);
    const requested: RequestedEffect[] = [];
    record.effects.forEach((request, index) => {
      const id = effectId(cause, index);
      if (request.type === TIMER_START) {
        this.#timers.arm(actor, id, timerStarted(request), correlation);
      } else if (request.type === TIMER_CANCEL) {
        this.#timers.cancel(actor, timerCancelled(request));
      } else {
        requested.push({ id, cause, request, actor, at, correlation, recovered: false });
      }
    });
    if (requested.length > 0) void this.#inOrder(requested);
  }

  /**
   * Finds the timers and effects that a stop or crash left open.
   *
   * @param states the actors as the log left them, before anything new is sent to them
   * @returns resumes them: timers with what is left of their delays (at once when nothing is), effects as their
   * registration says. Call it when the handlers can work.
   */
  leftOpen(states: Iterable<Readonly<ActorState>>): () => void {
    const timers: (() => void)[] = [];
    const lists: RequestedEffect[][] = [];
    for (const state of states) {
      for (const [timer, { id, correlation }] of Object.entries(state.timers)) {
        timers.push(() => this.#timers.arm(state.ref, id as EffectId, { timer }, correlation));
      }
      const requested = Object.entries(state.effects).map(
        ([id, { at, correlation, ...request }]): RequestedEffect => {
          const origin = { id: id as EffectId, cause: seqOfEffect(id), at: asEpochMs(at), correlation };
          return { ...origin, request, actor: state.ref, recovered: true };
        },
      );
      if (requested.length > 0) lists.push(requested);
    }
    return () => {
      for (const arm of timers) arm();
      for (const requested of lists) void this.#inOrder(requested);
    };
  }

  /**
   * Ends timers, lets running handlers end and then asks them to. What stays open resumes at the next start.
   *
   * @param drainMs how long handlers may go on before their signal is aborted, milliseconds
   */
  async stop(drainMs = 0): Promise<void> {
    this.#timers.stop();
    const ended = this.#allEnded();
    if (drainMs > 0 && this.#running > 0) {
      const late = Promise.withResolvers<void>();
      const cancel = this.#clock.after(drainMs, late.resolve);
      await Promise.race([ended, late.promise]);
      cancel();
    }
    this.#stop.abort(new KernelError('HF_EFFECT_STOPPED'));
    await this.#allEnded();
  }

  async #allEnded(): Promise<void> {
    if (this.#running === 0) return;
    this.#ended ??= Promise.withResolvers<void>();
    await this.#ended.promise;
  }

  /** Never rejects. */
  async #inOrder(requested: readonly RequestedEffect[]): Promise<void> {
    this.#running += 1;
    try {
      for (const one of requested) await this.#carryOut(one);
    } catch {
      // Its outcome cannot be recorded any more: it stays open, and the next start resumes it.
    }
    this.#running -= 1;
    if (this.#running > 0) return;
    this.#ended?.resolve();
    this.#ended = undefined;
  }

  async #carryOut(requested: RequestedEffect): Promise<void> {
    const { type } = requested.request;
    const registration = this.#handlers.get(type);
    if (!registration || (requested.recovered && registration.onRecovery === 'fail')) {
      return this.#answer(requested, { type: EFFECT_LOST, effect: type }, 'lost');
    }
    try {
      const outcome = outcomeOf(await this.#handled(registration, requested));
      this.#answer(requested, outcome ?? { type: EFFECT_DONE, effect: type }, 'done');
    } catch (error) {
      // A stop interrupts handlers: the effect stays open, and the next start resumes it.
      if (this.#stop.signal.aborted && !isCoded(error, 'HF_EFFECT_TIMEOUT')) return;
      const code = isCoded(error) ? error.code : 'HF_INTERNAL';
      const message = isCoded(error) ? error.what : 'see the log line effect.failed';
      this.#answer(requested, { type: EFFECT_FAILED, effect: type, code, message }, 'failed', error);
    }
  }

  #handled(registration: EffectRegistration, requested: RequestedEffect): unknown {
    const ms = registration.deadlineMs ?? DEFAULT_DEADLINE_MS;
    if (ms < Number.POSITIVE_INFINITY) return this.#within(ms, registration, requested);
    // The handler keeps its own time and obeys the signal: an effect that may last for hours needs no timer and no race.
    return (registration.handler as EffectHandler)(
      requested.request.params,
      contextOf(requested, this.#stop.signal),
    );
  }

  async #within(ms: number, registration: EffectRegistration, requested: RequestedEffect): Promise<unknown> {
    const deadline = new AbortController();
    const late = Promise.withResolvers<never>();
    const cancel = this.#clock.after(ms, () => {
      const error = new KernelError('HF_EFFECT_TIMEOUT', { effect: requested.request.type, ms });
      deadline.abort(error);
      late.reject(error);
    });
    const context = contextOf(requested, AbortSignal.any([deadline.signal, this.#stop.signal]));
    const stopped = () => late.reject(context.signal.reason);
    try {
      const handler = registration.handler as EffectHandler;
      context.signal.addEventListener('abort', stopped, { once: true });
      context.signal.throwIfAborted();
      return await Promise.race([handler(requested.request.params, context), late.promise]);
    } finally {
      context.signal.removeEventListener('abort', stopped); // the stop signal outlives every effect
      cancel();
    }
  }

  #answer(
    requested: RequestedEffect,
    outcome: EffectOutcome,
    end: EffectEnd['outcome'],
    error?: unknown,
  ): void {
    const { event, blobs } = isWithBlobs(outcome) ? outcome : { event: outcome, blobs: undefined };
    const { id, cause, actor, correlation, request } = requested;
    this.#onEnd({ type: request.type, outcome: end, id, actor, error });
    this.#actors.deliver(actor, event, { correlation, cause, outcome: id, blobs });
  }
}

function contextOf(requested: RequestedEffect, signal: AbortSignal): EffectContext {
  const { id, cause, at, actor, correlation, recovered } = requested;
  return { id, cause, at, actor, correlation, signal, recovered };
}

/** Only an object is an outcome: `() => list.push(x)` returns a number by accident of syntax. */
function outcomeOf(result: unknown): EffectOutcome | undefined {
  return isObject(result) ? (result as EffectOutcome) : undefined;
}

function isWithBlobs(outcome: EffectOutcome): outcome is Extract<EffectOutcome, { blobs: unknown }> {
  return typeof outcome.event === 'object' && 'blobs' in outcome;
}

/**
 * Durable timers: the log has since when and how long they run, this only wakes the actor at it. The actor system ignores a timer that was
 * cancelled meanwhile, because its id is no longer the armed one.
 */
export class Timers {
  readonly #actors: ActorSystem;
  readonly #clock: Clock;
  readonly #armed = new Map<string, { id: EffectId; disarm: () => void }>();
  #stopped = false;

  constructor(actors: ActorSystem, clock: Clock) {
    this.#actors = actors;
    this.#clock = clock;
  }

  /** Wakes the actor when the timer's delay has passed since it was armed, or at once when it has already. */
  arm(actor: string, id: EffectId, { timer }: Pick<TimerStart, 'timer'>, correlation: string): void {
    // Records become durable while a stop waits for effects; their timers are the next start's.
    if (this.#stopped) return;
    // Effects run after their record is durable: by now the machine may have left the state that wanted the timer.
    const armed = this.#actors.snapshot(actor)?.timers[timer];
    if (armed?.id !== id) return;
    const key = `${actor} ${timer}`;
    this.#armed.get(key)?.disarm();
    const disarm = this.#clock.after(this.#actors.timeLeft(armed), () => {
      this.#armed.delete(key);
      this.#actors.deliver(actor, { type: timer }, { correlation, cause: seqOfEffect(id), outcome: id });
    });
    this.#armed.set(key, { id, disarm });
  }

  cancel(actor: string, timer: string): void {
    const key = `${actor} ${timer}`;
    const armed = this.#armed.get(key);
    // A newer timer of that name may be armed already when an older record's cancel becomes durable.
    if (!armed || this.#actors.snapshot(actor)?.timers[timer]?.id === armed.id) return;
    armed.disarm();
    this.#armed.delete(key);
  }

  stop(): void {
    this.#stopped = true;
    for (const { disarm } of this.#armed.values()) disarm();
    this.#armed.clear();
  }
}
