import type { AnyMachineSnapshot } from 'xstate';
import { z } from 'zod';
import { type ClockJump, timeLeft } from '../clock-jumps.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { diffContext, toPlain } from '../json.ts';
import {
  ADOPT,
  type EffectRequest,
  LATEST,
  type LogEvent,
  logRecordSchema,
  TIMER_CANCEL,
  TIMER_START,
  timerOf,
} from '../log/record.ts';
import type { TakeoverMark } from './takeover-mark.ts';
import type { ActorState, Decided } from './transition.ts';
import { migrated, type Registered, timersOf } from './versions.ts';
import type { MachineStepper } from './xstate.ts';

// How actors go on here that another host left (docs/log.md, Actors of another host). Each is taken over by a record of its own, whose
// event holds all that decides it: replay needs nothing of the other host.

/** What another host left, for the one that goes on. */
export interface Inheritance {
  /** The host that held it last. */
  readonly host: string;
  /** Of that host's stream. */
  readonly incarnation: string;
  /** That host's last record that counts, and its hash. What it recorded later is an orphaned branch. */
  readonly seq: number;
  readonly hash: string;
  /** The actors as that record left them, as the lines of a portable file hold them. */
  readonly states: readonly Readonly<ActorState>[];
  /**
   * By how much this host's clock is ahead of that host's now, milliseconds; 0 unless given. Deadlines of timers are by
   * that host's clock, and so are the times that machines remember: both are moved by it.
   */
  readonly clockAheadMs?: number;
  /** How that host's clock was set, oldest first, as `jumpsOf` its clock actor: so long had its timers not truly run. */
  readonly clockJumps?: readonly ClockJump[];
}

const { value, context } = logRecordSchema.shape.to.shape;
const effectSchema = logRecordSchema.shape.effects.element;

/** A state in the event by which it is taken over. */
const adoptedSchema = z.object({
  machine: z.string(),
  version: logRecordSchema.shape.version,
  value,
  context: context.unwrap(),
  done: z.literal(true).optional(),
  /** By name: the deadline by the other host's clock, and how long it still had at the takeover. */
  timers: z.record(z.string(), z.object({ at: z.number(), leftMs: z.int().nonnegative() })),
  /** By the other host's ids. */
  effects: z.record(z.string(), effectSchema.extend({ at: z.number(), correlation: z.string() })),
});

/** The states of one takeover with the events that record it, in the order of the records. */
export interface AdoptionEvent {
  readonly ref: string;
  readonly event: LogEvent;
}

/**
 * The events by which states of another host are taken over.
 *
 * @param now epoch milliseconds by this host's clock
 * @throws HF_ACTOR_ADOPTION a state is not one; HF_EVENT_INVALID
 */
export function adoptionEvents(inheritance: Inheritance, now: number): AdoptionEvent[] {
  const { host, incarnation, seq, hash, states, clockAheadMs = 0, clockJumps = [] } = inheritance;
  const from = { host, incarnation, seq, hash, ...(clockAheadMs !== 0 && { clockAheadMs }) };
  return states.map(({ ref, machine, version, value, context, done, timers, effects }, part) => {
    const left = Object.entries(timers).map(([name, timer]) => {
      const leftMs = Math.round(timeLeft(timer, now - clockAheadMs, clockJumps));
      return [name, { at: timer.at, leftMs }] as const;
    });
    const rest = { machine, version, value, context, ...(done && { done }) };
    const state = { ...rest, timers: Object.fromEntries(left), effects };
    const event = { type: ADOPT, ...from, part, parts: states.length, state };
    return { ref, event: toPlain(event, 'event') as LogEvent };
  });
}

/**
 * What a takeover makes of an actor: the state that the other host left, in the machine's version of today, and requests for the
 * timers and effects that were open there. Decided from the event alone.
 *
 * @param ref the actor
 * @param before its state here, which is replaced; absent when there is none
 * @param at epoch milliseconds of the record
 * @param version that the record has or will have; a state of another one is migrated
 * @throws HF_ACTOR_ADOPTION the event holds no state of the machine; HF_MACHINE_VERSION the definition does not take its version
 */
export function decideAdoption(
  stepper: MachineStepper,
  definition: Registered,
  ref: string,
  before: Readonly<ActorState> | undefined,
  event: LogEvent,
  at: number,
  version = definition.version,
): Decided {
  const refused = (reason: string, cause?: unknown) =>
    new KernelError('HF_ACTOR_ADOPTION', { actor: ref, host: String(event.host), reason }, { cause });
  const { data: left, error } = adoptedSchema.safeParse(event.state);
  if (!left) throw refused(`${error.issues[0]?.path.join('.')}: ${error.issues[0]?.message}`);
  const { done = false, timers, effects } = left;
  const isSame = left.version === version;
  const next = isSame ? left : migrated(definition, { ...left, ref });
  let snapshot: AnyMachineSnapshot;
  try {
    snapshot = stepper.restore(next.value, next.context, done);
  } catch (cause) {
    throw refused('its machine has no such state', cause);
  }
  const open = isSame || done ? startsOf(timers, at) : migratedTimers(stepper, snapshot, timers, at);
  const again = Object.entries(effects).map(([id, { type, params, origin }]): EffectRequest => {
    const first = origin ?? `${event.host}:${id}`;
    return params === undefined ? { type, origin: first } : { type, params, origin: first };
  });
  const patch = diffContext(before?.context ?? {}, next.context);
  const to = { value: next.value, ...(patch && { context: patch }), ...(done && { done }) };
  return { decision: { to, effects: [...open, ...again] }, snapshot };
}

type LeftTimers = z.infer<typeof adoptedSchema>['timers'];

function startsOf(timers: LeftTimers, at: number): EffectRequest[] {
  return Object.entries(timers).map(([timer, { leftMs }]) => {
    return { type: TIMER_START, params: { timer, at: Math.min(at + leftMs, LATEST) } };
  });
}

/** Of a migrated state: those that it still waits for go on, those that are new to it start. */
function migratedTimers(
  { machine }: MachineStepper,
  snapshot: AnyMachineSnapshot,
  timers: LeftTimers,
  at: number,
): EffectRequest[] {
  const armed = Object.entries(timers).map(([name, timer]) => [
    name,
    { ...timer, id: '', armedAt: at, correlation: '' },
  ]);
  const changes = timersOf(machine, snapshot, { timers: Object.fromEntries(armed) }, at);
  const dropped = new Set(changes.filter(({ type }) => type === TIMER_CANCEL).map(timerOf));
  const kept = Object.entries(timers).filter(([name]) => !dropped.has(name));
  return [...startsOf(Object.fromEntries(kept), at), ...changes.filter(({ type }) => type === TIMER_START)];
}

/** A takeover as the states of a log tell it. */
export interface Takeover extends TakeoverMark {
  /** The record of its first state here. A state whose newest record is older was not taken over: it counts no more. */
  readonly first: number;
  /** Whether all its states were recorded. When not, the host ended amid it, and takes over from the same record again. */
  readonly isComplete: boolean;
}

/**
 * The newest takeover of some types of actors, from the states that a log leads to.
 *
 * @param states of one host, those of other types included
 * @param isOfType tells which actors belong together, by address
 * @returns undefined when they were never taken over from another host
 */
export function newestTakeover(
  states: Iterable<Readonly<ActorState>>,
  isOfType: (ref: string) => boolean,
): Takeover | undefined {
  const marks: TakeoverMark[] = [];
  let newest: TakeoverMark | undefined;
  for (const { ref, adopted } of states) {
    if (!adopted) continue;
    marks.push(adopted);
    if (isOfType(ref) && (newest === undefined || adopted.record > newest.record)) newest = adopted;
  }
  if (!newest) return undefined;
  const first = newest.record - newest.part;
  const recorded = marks.filter(({ record, part }) => record - part === first).length;
  return { ...newest, first, isComplete: recorded === newest.parts };
}
