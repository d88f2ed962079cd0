import { AssertionError } from 'node:assert';
import { isObject, type Json, jsonEqual } from '../../kernel/json.ts';
import type { EffectRequest, StateValue } from '../../kernel/log/record.ts';
import type { Story } from './story.ts';

/** What one event should do. @public */
export interface Expected {
  readonly state: StateValue;
  /** Everything asked for, in order; nothing when left out. Timers are not listed here. */
  readonly effects?: readonly EffectRequest[];
  /** The fields that matter; `undefined` says that a field is absent. */
  readonly context?: Readonly<Record<string, Json | undefined>>;
  /** Every time the machine waits for now, by the name of its delay, with what it armed it for, in milliseconds. */
  readonly timers?: Readonly<Record<string, number>>;
  /** Whether the state ignores the event. */
  readonly ignored?: boolean;
}

interface Difference {
  readonly what: string;
  readonly expected: unknown;
  readonly got: unknown;
}

/** @throws AssertionError listing every part that differs @internal */
export function check(story: Story, expected: Expected): void {
  const differences = [...compare(story, expected)];
  if (differences.length === 0) return;
  throw new AssertionError({
    message: `${sentence(story)}\n${differences.map(print).join('\n')}`,
    expected: Object.fromEntries(differences.map(({ what, expected }) => [what, expected])),
    actual: Object.fromEntries(differences.map(({ what, got }) => [what, got])),
    operator: 'then',
  });
}

function* compare({ step, effects, timers }: Story, expected: Expected): Generator<Difference> {
  if (!jsonEqual(step.value, expected.state)) {
    yield { what: 'state', expected: expected.state, got: step.value };
  }
  const wanted = expected.effects ?? [];
  if (!jsonEqual(effects, wanted)) yield { what: 'effects', expected: wanted, got: effects };
  const context = isObject(step.context) ? step.context : {};
  for (const [field, value] of Object.entries(expected.context ?? {})) {
    if (!jsonEqual(context[field], value)) {
      yield { what: `context.${field}`, expected: value, got: context[field] };
    }
  }
  if (expected.timers && !jsonEqual(timers, expected.timers)) {
    yield { what: 'timers', expected: expected.timers, got: timers };
  }
  if (expected.ignored !== undefined && step.ignored !== expected.ignored) {
    yield { what: 'ignored', expected: expected.ignored, got: step.ignored };
  }
}

function sentence({ machine, events }: Story): string {
  const last = events.at(-1);
  const history = events.slice(0, -1).map(({ type, timer }) => (type === 'elapsed' ? String(timer) : type));
  const given = history.length > 0 ? ` after ${history.join(', ')}` : '';
  return last
    ? `given ${machine.id}${given}\nwhen ${JSON.stringify(last)}\nthen`
    : `given ${machine.id}, initially`;
}

function print({ what, expected, got }: Difference): string {
  return `  ${what}\n    expected ${show(expected)}\n    got      ${show(got)}`;
}

/** A list shows one item a line, so that a missing or surplus one is seen at a glance. */
function show(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (!Array.isArray(value)) return JSON.stringify(value);
  if (value.length === 0) return 'none';
  return value.map((item) => JSON.stringify(item)).join(`\n${' '.repeat(13)}`);
}
