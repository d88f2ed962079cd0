import { type AnyMachineSnapshot, type AnyStateMachine, getNextTransitions } from 'xstate';
import type { HoldfastError } from '../errors/holdfast-error.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { parseActorRef } from '../ids.ts';
import { diffContext, type JsonObject, toPlain } from '../json.ts';
import { type EffectRequest, type LogEvent, TIMER_CANCEL, TIMER_START } from '../log/record.ts';
import type { ActorDefinition, MachineState } from './definition.ts';
import type { ActorState, Decided } from './transition.ts';
import type { MachineStepper } from './xstate.ts';

/** A definition with the plugin that registered it, which errors name. */
export type Registered = ActorDefinition & { readonly owner?: string };

/** The part of a state that a migration takes. */
type VersionedState = Pick<ActorState, 'ref' | 'version' | 'value' | 'context'>;

/** The machine that decided what a version recorded: today's, or one that the definition keeps. */
export function machineOf(
  { machine, version, earlier }: ActorDefinition,
  recorded: number,
): AnyStateMachine | undefined {
  return recorded === version ? machine : earlier?.[recorded];
}

/** An event as today's machine knows it. */
export function eventOfToday(
  { version, upcast }: ActorDefinition,
  event: LogEvent,
  recorded: number,
): LogEvent {
  return recorded === version || !upcast ? event : upcast(event, recorded);
}

/**
 * Brings a state that another version left into today's machine. Timers follow the new state: those that it does not
 * wait for are cancelled, those that are not armed yet start now, the others keep their deadlines.
 *
 * @param stepper of today's machine
 * @param at epoch milliseconds
 * @throws HF_MACHINE_VERSION the definition does not take that version
 */
export function decideMigration(
  stepper: MachineStepper,
  definition: Registered,
  state: ActorState,
  at: number,
): Decided {
  const next = migrated(definition, state);
  let snapshot: AnyMachineSnapshot;
  try {
    snapshot = stepper.restore(next.value, next.context, state.done);
  } catch (error) {
    throw refused(definition, state, `its migrate gives no state of the machine: ${textOf(error)}`, error);
  }
  const context = diffContext(state.context, next.context);
  const to = { value: next.value, ...(context && { context }), ...(state.done && { done: true as const }) };
  const effects = state.done ? [] : timersOf(stepper.machine, snapshot, state, at);
  return { decision: { to, effects }, snapshot };
}

/**
 * What the definition's `migrate` makes of a state that another version left.
 *
 * @throws HF_MACHINE_VERSION the definition does not take that version
 */
export function migrated(definition: Registered, state: VersionedState): MachineState {
  const { migrate, version } = definition;
  if (state.version > version) throw refused(definition, state, 'a later release wrote it');
  if (!migrate) throw refused(definition, state, 'its definition has no migrate');
  const before = { value: state.value, context: structuredClone(state.context) as JsonObject };
  let next: MachineState | undefined;
  try {
    next = migrate(before, state.version);
    if (next) next = { value: next.value, context: toPlain(next.context, 'context') as JsonObject };
  } catch (error) {
    throw refused(definition, state, `its migrate fails: ${textOf(error)}`, error);
  }
  if (!next) throw refused(definition, state, 'its migrate does not take that version');
  return next;
}

/** The timers that a migrated state cancels and starts: those that it waits for and that are armed keep their deadlines. */
export function timersOf(
  machine: AnyStateMachine,
  snapshot: AnyMachineSnapshot,
  { timers }: Pick<ActorState, 'timers'>,
  at: number,
): EffectRequest[] {
  const wanted = new Map<string, number>();
  for (const { eventType, delay } of getNextTransitions(snapshot) as readonly Delayed[]) {
    if (delay === undefined) continue;
    const duration = typeof delay === 'string' ? machine.implementations.delays[delay] : delay;
    const args = { context: snapshot.context, event: { type: eventType } };
    wanted.set(
      eventType,
      Number(typeof duration === 'function' ? (duration as (args: object) => number)(args) : duration),
    );
  }
  return [
    ...Object.keys(timers).flatMap((timer) =>
      wanted.has(timer) ? [] : [{ type: TIMER_CANCEL, params: { timer } }],
    ),
    ...[...wanted].flatMap(([timer, delayMs]) =>
      timers[timer] ? [] : [{ type: TIMER_START, params: { timer, at: at + delayMs } }],
    ),
  ];
}

interface Delayed {
  readonly eventType: string;
  readonly delay?: string | number;
}

function refused(
  { owner, version }: Registered,
  { ref, version: recorded }: VersionedState,
  reason: string,
  cause?: unknown,
): HoldfastError {
  const { type } = parseActorRef(ref);
  const details = { plugin: owner ?? '(unnamed)', type, actor: ref, recorded, current: version, reason };
  return new KernelError('HF_MACHINE_VERSION', details, { cause });
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
}
