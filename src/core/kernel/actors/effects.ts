import type { Clock } from '../clock.ts';
import { isCoded } from '../errors/holdfast-error.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { asEpochMs, asSeq, type EffectId, effectId, parseActorRef, seqOfEffect } from '../ids.ts';
import { isObject } from '../json.ts';
import {
  type EffectRequest,
  type LogRecord,
  TIMER_CANCEL,
  TIMER_START,
  timerCancelled,
  timerStarted,
} from '../log/record.ts';
import {
  EFFECT_DONE,
  EFFECT_FAILED,
  EFFECT_LOST,
  type EffectContext,
  type EffectGuard,
  type EffectHandler,
  type EffectOutcome,
  type EffectRegistration,
} from './effect.ts';
import { EffectScope } from './effect-scope.ts';
import type { EffectRunner } from './pending-effects.ts';
import type { ActorSystem } from './system.ts';
import { Timers } from './timers.ts';
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

type GuardOf = (actorType: string) => EffectGuard | undefined;

/** What an effect of a type that has a guard runs under. */
interface Guarded {
  readonly guard: EffectGuard;
  readonly scope: EffectScope;
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
  #guardOf: GuardOf | undefined;
  /** By type of actor, of those that have a guard. */
  readonly #scopes = new Map<string, EffectScope>();
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

  /**
   * Lets some effects be carried out only while this host may act for their type of actor. Call it before the first effect.
   *
   * @param guardOf by type of actor; undefined for those that act on every host. A type that has a guard must always have
   * one: when this host may not act, its `fencingToken` throws
   */
  guardWith(guardOf: GuardOf): void {
    this.#guardOf = guardOf;
  }

  /**
   * Lets what this host does for some types of actors that have a guard come to its end: disarms their timers, begins none of
   * their effects, and waits for those under way, whose outcomes are recorded. `endOf` has to follow; called meanwhile, it
   * ends the waiting.
   *
   * @param patienceMs how long it waits at most, milliseconds
   */
  async restOf(types: readonly string[], patienceMs: number): Promise<void> {
    this.#timers.disarm(types);
    const late = Promise.withResolvers<void>();
    const cancel = this.#clock.after(patienceMs, late.resolve);
    await Promise.race([Promise.all(types.map((type) => this.#scopeOf(type).rest(type))), late.promise]);
    cancel();
  }

  /**
   * Ends what this host does for some types of actors that have a guard: disarms their timers, and aborts their effects. What
   * is interrupted stays open in the log. When it resolves nothing of them is under way any more; a handler that does not
   * obey its signal is waited for until its deadline.
   */
  async endOf(types: readonly string[]): Promise<void> {
    this.#timers.disarm(types);
    await Promise.all(types.map((type) => this.#endOf(type)));
    this.#timers.disarm(types);
  }

  async #endOf(type: string): Promise<void> {
    const scope = this.#scopes.get(type);
    if (!scope) return;
    await scope.end(type);
    if (this.#scopes.get(type) === scope) this.#scopes.delete(type);
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
    if (requested.length > 0) this.#begin(actor, requested);
  }

  #begin(actor: string, requested: readonly RequestedEffect[]): void {
    if (this.#guardOf === undefined) {
      void this.#inOrder(requested);
      return;
    }
    const { type } = parseActorRef(actor);
    const guard = this.#guardOf(type);
    if (!guard) {
      void this.#inOrder(requested);
      return;
    }
    void this.#inOrder(requested, { guard, scope: this.#scopeOf(type) });
  }

  #scopeOf(type: string): EffectScope {
    const scope = this.#scopes.get(type) ?? new EffectScope(this.#stop.signal);
    this.#scopes.set(type, scope);
    return scope;
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
    const lists: (readonly [actor: string, requested: RequestedEffect[]])[] = [];
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
      if (requested.length > 0) lists.push([state.ref, requested]);
    }
    return () => {
      for (const arm of timers) arm();
      for (const [actor, requested] of lists) this.#begin(actor, requested);
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
  async #inOrder(requested: readonly RequestedEffect[], guarded?: Guarded): Promise<void> {
    this.#running += 1;
    try {
      if (guarded) await guarded.scope.run(() => this.#inOrderGuarded(requested, guarded));
      else for (const one of requested) await this.#carryOut(one);
    } catch {
      // Its outcome cannot be recorded any more, or this host may not act: it stays open, and who goes on resumes it.
    }
    this.#running -= 1;
    if (this.#running > 0) return;
    this.#ended?.resolve();
    this.#ended = undefined;
  }

  /** @throws this host may not act: that effect and those behind it stay open */
  async #inOrderGuarded(requested: readonly RequestedEffect[], { guard, scope }: Guarded): Promise<void> {
    for (const one of requested) {
      await scope.within(() => guard.ready(one.cause));
      const origin = one.request.origin ?? `${guard.host}:${one.id}`;
      const request = { ...one.request, origin };
      await this.#carryOut({ ...one, request, fencingToken: guard.fencingToken() }, scope);
    }
  }

  async #carryOut(requested: RequestedEffect, scope?: EffectScope): Promise<void> {
    const { type } = requested.request;
    const registration = this.#handlers.get(type);
    if (!registration || (requested.recovered && registration.onRecovery === 'fail')) {
      return this.#answer(requested, { type: EFFECT_LOST, effect: type }, 'lost');
    }
    try {
      const outcome = outcomeOf(await this.#handled(registration, requested, scope));
      this.#answer(requested, outcome ?? { type: EFFECT_DONE, effect: type }, 'done');
    } catch (error) {
      // A stop interrupts handlers: the effect stays open, and the next start resumes it.
      if ((scope?.signal ?? this.#stop.signal).aborted && !isCoded(error, 'HF_EFFECT_TIMEOUT')) return;
      const code = isCoded(error) ? error.code : 'HF_INTERNAL';
      const message = isCoded(error) ? error.what : 'see the log line effect.failed';
      this.#answer(requested, { type: EFFECT_FAILED, effect: type, code, message }, 'failed', error);
    }
  }

  #handled(registration: EffectRegistration, requested: RequestedEffect, scope?: EffectScope): unknown {
    const ms = registration.deadlineMs ?? DEFAULT_DEADLINE_MS;
    if (ms < Number.POSITIVE_INFINITY) return this.#within(ms, registration, requested, scope);
    // The handler keeps its own time and obeys the signal: an effect that may last for hours needs no timer and no race.
    return (registration.handler as EffectHandler)(
      requested.request.params,
      contextOf(requested, scope?.signal ?? this.#stop.signal),
    );
  }

  async #within(
    ms: number,
    registration: EffectRegistration,
    requested: RequestedEffect,
    scope?: EffectScope,
  ): Promise<unknown> {
    const deadline = new AbortController();
    const late = Promise.withResolvers<never>();
    const cancel = this.#clock.after(ms, () => {
      const error = new KernelError('HF_EFFECT_TIMEOUT', { effect: requested.request.type, ms });
      deadline.abort(error);
      late.reject(error);
    });
    const context = contextOf(
      requested,
      AbortSignal.any([deadline.signal, scope?.signal ?? this.#stop.signal]),
    );
    const stopped = () => late.reject(context.signal.reason);
    try {
      const handler = registration.handler as EffectHandler;
      context.signal.addEventListener('abort', stopped, { once: true });
      context.signal.throwIfAborted();
      const work = handler(requested.request.params, context);
      if (scope) return await ended(work, late.promise, scope, deadline.signal);
      return await Promise.race([work, late.promise]);
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
  const { cause, at, actor, correlation, recovered, request, fencingToken } = requested;
  const id = (request.origin as EffectId | undefined) ?? requested.id;
  const context = { id, cause, at, actor, correlation, signal, recovered };
  return fencingToken === undefined ? context : { ...context, fencingToken };
}

/** The result of a handler. One that another host goes on from is waited for until it has truly ended, or its deadline has. */
async function ended(
  work: unknown,
  late: Promise<never>,
  scope: EffectScope,
  deadline: AbortSignal,
): Promise<unknown> {
  try {
    return await Promise.race([work, late]);
  } catch (error) {
    if (!scope.isEnding) throw error;
    const expired = Promise.withResolvers<void>();
    if (deadline.aborted) expired.resolve();
    deadline.addEventListener('abort', () => expired.resolve(), { once: true });
    await Promise.race([Promise.allSettled([work]), expired.promise]);
    throw error;
  }
}

/** Only an object is an outcome: `() => list.push(x)` returns a number by accident of syntax. */
function outcomeOf(result: unknown): EffectOutcome | undefined {
  return isObject(result) ? (result as EffectOutcome) : undefined;
}

function isWithBlobs(outcome: EffectOutcome): outcome is Extract<EffectOutcome, { blobs: unknown }> {
  return typeof outcome.event === 'object' && 'blobs' in outcome;
}
