import { z } from 'zod';
import { KernelError } from '../errors/kernel-error.ts';
import { isJson, isObject, type Json, type JsonObject } from '../json.ts';

/** The records that hold the digest of saved states: their actor and their event. */
export const CHECKPOINT = { actor: 'runtime.lifecycle/host', event: 'CHECKPOINT' } as const;

/** The record that says that an archive was deleted: its `to` is the last record that is gone. */
export const ARCHIVE_DELETED = { actor: 'runtime.retention/host', event: 'ARCHIVE_DELETED' } as const;

/** The actor that remembers how the wall clock was set, and the event that says so. */
export const CLOCK = { actor: 'runtime.clock/host', type: 'runtime.clock', event: 'JUMPED' } as const;

/**
 * The event that every actor gets whose machine names it, when the wall clock was set by `byMs`: the machine moves the times
 * that it remembers by as much, so that what it computes from them is the time that truly passed.
 */
export const CLOCK_SET = 'CLOCK_SET';

/** What a machine asks for: a named side effect with plain parameters. */
export interface EffectRequest {
  readonly type: string;
  readonly params?: Json;
  /**
   * `<host>:<seq>.<index>` of the first request, where this is an open effect of another host that an adoption asks for again:
   * its handler gets that id as idempotency key.
   */
  readonly origin?: string;
}

/** The record of another host that led to one here. */
export interface Origin {
  readonly host: string;
  /** Absent when no record led to it there. */
  readonly seq?: number;
}

/** An event as machines see it and the log keeps it. @public */
export interface LogEvent {
  readonly type: string;
  readonly [field: string]: Json;
}

/** State value of a statechart: a name, or names by region. */
export type StateValue = string | { readonly [region: string]: StateValue };

const TIMER_EVENT = /^xstate\.after\.([^.]+)/;

/**
 * The name of the delay that an event says is over. XState names the timer of `after: { close: … }`, and the event by
 * which it elapses, `xstate.after.close.<id of the state>`.
 *
 * @returns undefined for any other event
 */
export function delayOf(event: string): string | undefined {
  return TIMER_EVENT.exec(event)?.[1];
}

/** Where a transition led. */
export interface Target {
  readonly value: StateValue;
  /** JSON merge patch from the context before to the context after; absent when nothing changed. */
  readonly context?: JsonObject;
  /** Set when the actor reached a final state. */
  readonly done?: true;
}

/**
 * One transition in the log (`docs/architecture.md`, A record). The actor's first record has the event `init`, whose `input`
 * field is what its machine started from, and no `from`.
 *
 * @public
 */
export interface LogRecord {
  readonly seq: number;
  /**
   * Epoch milliseconds by the wall clock. Smaller than that of the record before only where the clock was set back: the
   * first record after that says so (`clock-jumps.ts`). The order of the records is `seq`.
   */
  readonly at: number;
  readonly actor: string;
  /** The machine's id and the version of its definition. */
  readonly machine: string;
  readonly version: number;
  readonly event: LogEvent;
  readonly from?: StateValue;
  readonly to: Target;
  /** The state has no transition for this event. It is recorded all the same: in an incident it often explains the most. */
  readonly ignored?: true;
  /** An outcome or timer that nothing waited for any more; the machine did not see it. */
  readonly stale?: true;
  /** The machine threw; the state is as before. */
  readonly failed?: string;
  /** Its effects ran as soon as it was queued: a crash could have lost it after them. */
  readonly batched?: true;
  readonly effects: readonly EffectRequest[];
  readonly correlation: string;
  /**
   * The user of this machine whose process sent the event, as the operating system says: a user id, or `unknown` where it
   * did not say. Absent for what no local process sent.
   */
  readonly uid?: number | 'unknown';
  /** The seq of the record that led to this one. */
  readonly cause?: number;
  /** The record of another host that led to this one. */
  readonly origin?: Origin;
  /** The effect or timer that this record is the outcome of. */
  readonly outcome?: string;
}

/**
 * Whether the time of a record lies before that of the record before, and it is none that says that the clock was set.
 *
 * @param before epoch milliseconds
 */
export function goesBack({ at, actor }: Pick<LogRecord, 'at' | 'actor'>, before: number): boolean {
  return at < before && actor !== CLOCK.actor;
}

/** The last instant that can be written as a date, epoch milliseconds. */
export const LATEST = 8_640_000_000_000_000;

// Every record from outside is checked by these: a recursive schema takes ten times as long as a plain function.
const stateValue = z.custom<StateValue>(isStateValue, 'Invalid input');
const json = z.custom<Json>(isJson, 'Invalid input');

/** Guards records that come from outside: an imported file, a database somebody edited. */
export const logRecordSchema = z.strictObject({
  seq: z.int().positive(),
  at: z.int().nonnegative().max(LATEST),
  actor: z.string().min(1).max(512),
  machine: z.string().min(1).max(128),
  version: z.int().nonnegative(),
  event: z.looseObject({ type: z.string().min(1) }),
  from: stateValue.optional(),
  to: z.strictObject({
    value: stateValue,
    context: z.record(z.string(), json).optional(),
    done: z.literal(true).optional(),
  }),
  ignored: z.literal(true).optional(),
  stale: z.literal(true).optional(),
  failed: z.string().optional(),
  batched: z.literal(true).optional(),
  effects: z.array(
    z.strictObject({
      type: z.string(),
      params: json.optional(),
      origin: z.string().min(1).max(512).optional(),
    }),
  ),
  correlation: z.string().min(1).max(128),
  uid: z.union([z.int().nonnegative(), z.literal('unknown')]).optional(),
  cause: z.int().positive().optional(),
  origin: z.strictObject({ host: z.string().min(1).max(255), seq: z.int().positive().optional() }).optional(),
  outcome: z
    .string()
    .regex(/^\d+\.\d+$/)
    .optional(),
});

function isStateValue(value: unknown): value is StateValue {
  return typeof value === 'string' || (isObject(value) && Object.values(value).every(isStateValue));
}

/** The event type of an actor's first record. */
export const INIT = 'init';

/** The event type by which an actor of an older machine version came into this one; its `fromVersion` says which. */
export const MIGRATE = 'migrate';

/** The event type by which an actor goes on from the state that another host left (`actors/adoption.ts`). */
export const ADOPT = 'adopt';

/** The effects that the actor system itself carries out: durable timers. */
export const TIMER_START = 'timer.start';
export const TIMER_CANCEL = 'timer.cancel';

/** The timer that an effect starts. @param effect of the type `timer.start` */
export function timerStarted({ params }: EffectRequest): TimerStart {
  const { timer, at } = isObject(params) ? params : {};
  return { timer: String(timer), at: Number(at) };
}

/** The name of the timer that an effect cancels. @param effect of the type `timer.cancel` */
export function timerCancelled({ params }: EffectRequest): string {
  return isObject(params) ? String(params.timer) : '';
}

export interface TimerStart {
  /** The machine's name for the timer. */
  readonly timer: string;
  /** Epoch milliseconds at which it fires. */
  readonly at: number;
}

/** The timer that an effect starts; undefined for any other effect. */
export function timerStartOf({ type, params }: EffectRequest): TimerStart | undefined {
  if (type !== TIMER_START || !isObject(params)) return undefined;
  const { timer, at } = params;
  return typeof timer === 'string' && typeof at === 'number' ? { timer, at } : undefined;
}

/** The name of the timer that an effect starts or cancels; undefined for any other effect. */
export function timerOf({ type, params }: EffectRequest): string | undefined {
  if ((type !== TIMER_START && type !== TIMER_CANCEL) || !isObject(params)) return undefined;
  return typeof params.timer === 'string' ? params.timer : undefined;
}

/** @throws HF_LOG_CORRUPT the body is not a record */
export function parseRecord(seq: number, body: string): LogRecord {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    throw new KernelError('HF_LOG_CORRUPT', { seq, reason: 'its body is not JSON' }, { cause: error });
  }
  return checkRecord(seq, value, false);
}

/**
 * Checks the body of a record that has been parsed.
 *
 * @param strict whether the whole schema is checked, field by field, for what comes from somebody else
 * @throws HF_LOG_CORRUPT it is not a record
 */
export function checkRecord(seq: number, value: unknown, strict: boolean): LogRecord {
  if (isRecordShaped(value) && !strict) return value;
  const { data, error } = logRecordSchema.safeParse(value);
  if (data && isRecordShaped(value)) return value;
  const issue = error?.issues[0];
  throw new KernelError('HF_LOG_CORRUPT', {
    seq,
    reason: issue ? `${issue.path.join('.')}: ${issue.message}` : 'not a record',
  });
}

/** A quick check of what our own writer wrote; for what fails it, the full schema says why. */
function isRecordShaped(value: unknown): value is LogRecord {
  const record = value as Partial<LogRecord> | null;
  return (
    Number.isSafeInteger(record?.seq) &&
    isInstant(record?.at) &&
    typeof record?.actor === 'string' &&
    typeof record.correlation === 'string' &&
    typeof record.event?.type === 'string' &&
    typeof record.machine === 'string' &&
    isState(record.to?.value) &&
    Array.isArray(record.effects) &&
    record.effects.every(isEffectShaped)
  );
}

function isState(value: unknown): boolean {
  return typeof value === 'string' || isObject(value);
}

/** Timers are what the log itself reads of effects. */
function isEffectShaped(effect: unknown): boolean {
  if (!isObject(effect) || typeof effect.type !== 'string') return false;
  if (effect.type !== TIMER_START && effect.type !== TIMER_CANCEL) return true;
  const { params } = effect;
  if (!isObject(params) || typeof params.timer !== 'string') return false;
  return effect.type === TIMER_CANCEL || isInstant(params.at);
}

function isInstant(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0 && Number(value) <= LATEST;
}
