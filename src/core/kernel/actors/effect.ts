import type { EffectId, EpochMs, Seq } from '../ids.ts';
import type { Blobs } from '../log/event-log.ts';

/** What an effect handler gets besides the parameters. @public */
export interface EffectContext {
  /**
   * `<seq>.<index>`, the same again when the effect is retried after a crash: use it as idempotency key. Where another host
   * asked for it first, `<host>:<seq>.<index>` of that request.
   */
  readonly id: EffectId;
  /** The record that asked, and when it was made. */
  readonly cause: Seq;
  readonly at: EpochMs;
  readonly actor: string;
  readonly correlation: string;
  /** Aborted at the effect's deadline and when the runtime stops. */
  readonly signal: AbortSignal;
  /** True when a crash interrupted the first run: its result is unknown. */
  readonly recovered: boolean;
  /**
   * Of an effect that one host at a time carries out: says which of two came later (docs/cluster.md). Whoever is asked to
   * change something may refuse one that is older than another that it has seen.
   */
  readonly fencingToken?: string;
}

/** Says when the effects of a type of actor may be carried out by this host, and under which fencing token. */
export interface EffectGuard {
  /** Name of this host. The ids of effects begin with it, so that they stay the same where another host tries them again. */
  readonly host: string;
  /**
   * Resolves when whoever goes on in this host's place would know the record that asks for the effect. A rejection leaves the
   * effect open.
   */
  ready(seq: number): Promise<void>;
  /** The fencing token. @throws this host may not act now: the effect stays open */
  fencingToken(): string;
}

/** An event of the machine that asked. It must be plain JSON, which is checked when it is delivered. */
export interface OutcomeEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** The outcome of an effect: an event for the actor that asked, with bodies to store beside it. @public */
export type EffectOutcome = OutcomeEvent | { readonly event: OutcomeEvent; readonly blobs: Blobs };

/**
 * Carries out one type of effect by calling adapters. Returning nothing means "done, nothing to report": the
 * actor gets `effect.done`. A throw becomes `effect.failed` with the error's code.
 *
 * @public
 */
export type EffectHandler<P = unknown, S = void> = (
  params: P,
  context: EffectContext,
  started: S,
) => EffectOutcome | undefined | Promise<EffectOutcome | undefined> | Promise<void> | void;

/** How long an effect may take, and what happens to it after a crash. @public */
export interface EffectOptions {
  /**
   * After a crash between "asked" and "answered": `retry` runs the handler again with the same id (it must be
   * idempotent), `fail` gives the actor `effect.lost` and lets it decide.
   */
  readonly onRecovery: 'retry' | 'fail';
  /**
   * Milliseconds until the effect is given up as `effect.failed` with HF_EFFECT_TIMEOUT; 30,000 unless set. With
   * `Infinity` the handler keeps its own time, and must end when the signal is aborted.
   */
  readonly deadlineMs?: number;
  /** The adapter called, for `holdfast graph`. */
  readonly adapter?: string;
}

export interface EffectRegistration extends EffectOptions {
  readonly type: string;
  /** The `EffectHandler` of a plugin; it also gets what the plugin's start returned. */
  readonly handler: (params: never, context: EffectContext) => unknown;
}

/** Outcome events that the effect dispatcher makes itself. */
export const EFFECT_DONE = 'effect.done';
export const EFFECT_FAILED = 'effect.failed';
export const EFFECT_LOST = 'effect.lost';
