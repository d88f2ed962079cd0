import type { AnyStateMachine, EventFrom, EventObject, InputFrom } from 'xstate';
import type { Json } from '../../kernel/json.ts';
import type { LogEvent } from '../../kernel/log/record.ts';
import { check, type Expected } from './expectation.ts';
import { Story } from './story.ts';

/** The passing of a time the machine waits for, see `elapsed`. @public */
export interface Elapsed {
  readonly type: 'elapsed';
  /** The name of the delay in the machine's `setup`. */
  readonly timer: string;
}

/** An event of the machine, or the passing of a time it waits for. @public */
export type GivenEvent<M extends AnyStateMachine> = EventFrom<M> | Elapsed;

/** The situation before the event under test. @public */
export interface Before<M extends AnyStateMachine> {
  /** What the actor starts from; leave it out for machines that take none. */
  readonly input?: InputFrom<M>;
  /** What happened before, in order. */
  readonly events?: readonly GivenEvent<M>[];
}

/** A machine in a situation; `when` sends it an event. @public */
export interface Given<M extends AnyStateMachine> {
  /** Says what the machine does when it starts (after the events of `given`, if there are any). */
  initially(expected: Expected): Given<M>;
  when(event: GivenEvent<M>): When<M>;
}

/** A machine after an event; `then` compares what came of it. @public */
export interface When<M extends AnyStateMachine> {
  /**
   * Compares, and goes on from there.
   *
   * @throws AssertionError naming what was given, what was expected and what was got
   */
  then(expected: Expected): Given<M>;
}

/**
 * Tests a machine as a sentence: given what happened, when this happens, then that is the state and those are the
 * effects asked for. Runs the same step as the actor system, with every context frozen, so a machine that changes
 * its context in place fails too.
 *
 * @param machine any pure machine
 * @param before input and history
 * @throws AssertionError a timer is said to elapse that is not armed
 * @example
 * given(door, { input: { closeMs: 50 }, events: [{ type: 'OPEN', by: 'ann' }] })
 *   .when(elapsed('close'))
 *   .then({ state: 'closed', effects: [{ type: 'lamp', params: { on: false } }], timers: {} });
 * @public
 */
export function given<M extends AnyStateMachine>(machine: M, before: Before<M> = {}): Given<M> {
  let story = Story.begin(machine, before.input as Json | undefined);
  for (const event of before.events ?? []) story = story.next(recorded(event));
  return from(story);
}

/** The passing of a delay, by its name in the machine's `setup`; the machine must be waiting for it. @public */
export function elapsed(timer: string): Elapsed {
  return { type: 'elapsed', timer };
}

/** An event as it stands in the log: its fields are JSON. */
function recorded(event: EventObject): LogEvent {
  return { ...event };
}

function from<M extends AnyStateMachine>(story: Story): Given<M> {
  return {
    initially(expected) {
      check(story, expected);
      return from(story);
    },
    when(event) {
      const after = story.next(recorded(event));
      return {
        // biome-ignore lint/suspicious/noThenProperty: the sentence wants it; an await by mistake is reported below
        then(expected) {
          if (typeof expected === 'function') throw new TypeError('given … when … then is not a promise');
          check(after, expected);
          return from(after);
        },
      };
    },
  };
}
