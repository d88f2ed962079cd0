import type { ActorState, Decision } from '../../kernel/actors/transition.ts';
import type { JsonObject } from '../../kernel/json.ts';
import type { LogEvent, LogRecord } from '../../kernel/log/record.ts';
import type { Difference } from '../../kernel/replay/findings.ts';
import { redact } from '../logging/redact.ts';

/**
 * A record for output. Events should hold no secrets; one that is there nevertheless is redacted here. Long values are cut one
 * by one, so that the record keeps its shape.
 */
export function shown(record: LogRecord): LogRecord {
  const { event, from, to, effects, failed, ...facts } = record;
  return {
    ...facts,
    actor: String(redact(facts.actor)),
    correlation: String(redact(facts.correlation)),
    event: shownEvent(event),
    ...(from !== undefined && { from }),
    ...shownDecision({ to, effects, ...(failed !== undefined && { failed }) }),
  };
}

function shownEvent(event: LogEvent): LogEvent {
  return { ...redactedFields(event), type: String(redact(event.type)) };
}

function shownDecision<T extends Decision>(decision: T): T {
  const { to, effects, failed } = decision;
  return {
    ...decision,
    to: { ...to, ...(to.context && { context: redactedFields(to.context) }) },
    effects: effects.map(({ type, params }) => {
      return { type, ...(params !== undefined && { params: redact(params) }) };
    }),
    ...(failed !== undefined && { failed: String(redact(failed)) }),
  };
}

/** A state with its secrets redacted. */
export function shownState<T extends ActorState>(state: T): T {
  return { ...state, context: redact(state.context) };
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

function redactedFields(fields: object): JsonObject {
  const copy = redact(fields);
  return typeof copy === 'object' && copy !== null ? Object.fromEntries(Object.entries(copy)) : {};
}
