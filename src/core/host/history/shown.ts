import type { ActorState, Decision } from '../../kernel/actors/transition.ts';
import type { JsonObject } from '../../kernel/json.ts';
import type { LogEvent, LogRecord } from '../../kernel/log/record.ts';
import type { Difference } from '../../kernel/replay/findings.ts';
import { type Bounds, redact } from '../logging/redact.ts';

/**
 * A record for output. Events should hold no secrets; one that is there nevertheless is redacted here. Long values are cut one
 * by one, so that the record keeps its shape.
 */
export function shown(record: LogRecord): LogRecord {
  return shownWithin(record);
}

/** The same. @param bounds how much of one value is kept; as much as a log line has, unless given */
export function shownWithin(record: LogRecord, bounds?: Bounds): LogRecord {
  const { event, from, to, effects, failed, ...facts } = record;
  return {
    ...facts,
    actor: String(redact(facts.actor)),
    correlation: String(redact(facts.correlation)),
    event: shownEvent(event, bounds),
    ...(from !== undefined && { from }),
    ...shownDecision({ to, effects, ...(failed !== undefined && { failed }) }, bounds),
  };
}

function shownEvent(event: LogEvent, bounds?: Bounds): LogEvent {
  return { ...redactedFields(event, bounds), type: String(redact(event.type)) };
}

function shownDecision<T extends Decision>(decision: T, bounds?: Bounds): T {
  const { to, effects, failed } = decision;
  return {
    ...decision,
    to: { ...to, ...(to.context && { context: redactedFields(to.context, bounds) }) },
    effects: effects.map(({ type, params }) => {
      return { type, ...(params !== undefined && { params: redact(params, bounds) }) };
    }),
    ...(failed !== undefined && { failed: String(redact(failed)) }),
  };
}

/** A state with its secrets redacted, also in what it waits for. */
export function shownState<T extends ActorState>(state: T): T {
  return shownStateWithin(state);
}

/** The same. @param bounds as of a record */
export function shownStateWithin<T extends ActorState>(state: T, bounds?: Bounds): T {
  return {
    ...state,
    context: redact(state.context, bounds),
    timers: mapped(state.timers, (timer) => ({ ...timer, correlation: String(redact(timer.correlation)) })),
    effects: mapped(state.effects, ({ params, ...effect }) => ({
      ...effect,
      ...(params !== undefined && { params: redact(params, bounds) }),
      correlation: String(redact(effect.correlation)),
    })),
  };
}

function mapped<T>(values: Readonly<Record<string, T>>, change: (value: T) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
}

/** A decision that comes out otherwise, its secrets redacted. */
export function shownDifference(one: Difference): Difference {
  const { event, expected, got } = one;
  return {
    ...one,
    event: shownEvent(event),
    ...(expected && { expected: shownDecision(expected) }),
    ...(got && { got: shownDecision(got) }),
  };
}

function redactedFields(fields: object, bounds?: Bounds): JsonObject {
  const copy = redact(fields, bounds);
  return typeof copy === 'object' && copy !== null ? Object.fromEntries(Object.entries(copy)) : {};
}
