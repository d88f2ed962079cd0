import type { ActorDefinition } from '../actors/definition.ts';
import { recoverSteps } from '../actors/recover.ts';
import type { Decision } from '../actors/transition.ts';
import { type ActorState, applyRecord } from '../actors/transition.ts';
import { KernelError } from '../errors/kernel-error.ts';
import { parseActorRef } from '../ids.ts';
import { jsonEqual } from '../json.ts';
import { readChained } from '../log/chain.ts';
import type { HistoryReader } from '../log/event-log.ts';
import {
  type EffectRequest,
  type LogEvent,
  type LogRecord,
  TIMER_CANCEL,
  TIMER_START,
} from '../log/record.ts';
import type { Change, Inserted } from './changes.ts';
import { type Difference, Findings, type Untrusted } from './findings.ts';
import { candidatesOf } from './guards.ts';
import { Imagined } from './imagined.ts';
import { decisionOf, sameDecision } from './verify.ts';

/** What an actor waits for at the end, and did not in the log. */
export interface Unanswered {
  readonly actor: string;
  /** An effect's type, or a timer's name. */
  readonly type: string;
  /** When it was asked for, or goes off; epoch milliseconds. */
  readonly at: number;
  readonly timer: boolean;
}

export interface WhatIf {
  /** Records that were decided again. */
  readonly records: number;
  /** Types of actors whose machines are not known here: nothing of theirs was decided again. */
  readonly unknown: readonly string[];
  /** Decisions that come out otherwise, the first first. */
  readonly differences: readonly Difference[];
  /** Those that stay as they were, of actors that remember something else: counters, times. */
  readonly remembered: readonly Difference[];
  readonly untrusted: readonly Untrusted[];
  readonly unanswered: readonly Unanswered[];
  /** Fields that a patch names and its recorded event does not have. */
  readonly absent: readonly { readonly seq: number; readonly field: string }[];
  /** How many there are beyond those listed. */
  readonly more: Readonly<Record<'differences' | 'remembered' | 'untrusted', number>>;
}

/** A timer that arms itself again and again goes off no more often than this. */
const MOST_UNRECORDED = 10_000;
/** Differences of which it is told which guards decided. */
const MOST_WITH_GUARDS = 100;
/** Records between two steps. */
const STEP = 100;

/**
 * Runs a log again with something changed, and lists every decision that comes out otherwise (C8). Timers that are
 * armed only now go off at their deadlines; outcomes of effects that are asked for no more reach nobody. Yields the
 * seq reached.
 *
 * @param definitions by type; those of other machines in the place of the log's own, when that is the question
 * @param changes none when only the machines differ: then everything is decided again, from the first record
 * @param upTo the last record that is decided again
 * @throws HF_LOG_RANGE, HF_REPLAY_CHANGE, HF_LOG_CORRUPT
 */
export function* whatIfSteps(
  reader: HistoryReader,
  definitions: ReadonlyMap<string, ActorDefinition>,
  changes: readonly Change[],
  otherMachines = false,
  upTo = Number.MAX_SAFE_INTEGER,
): Generator<number, WhatIf> {
  const first = Math.max(reader.firstSeq(), 1);
  const places = changes.map((change) => (change.kind === 'insert' ? change.after + 1 : change.seq));
  const absent = changes.flatMap((change) => {
    if (change.kind === 'insert') return [];
    const { event } = reader.record(change.seq);
    return change.kind === 'set' ? change.absent(event).map((field) => ({ seq: change.seq, field })) : [];
  });
  const from = otherMachines || places.length === 0 ? first : Math.max(first, Math.min(...places));
  const base = from > 1 ? [...(yield* recoverSteps(reader, from - 1)).states.values()] : [];
  const before = from > first ? reader.record(from - 1) : { seq: from - 1, at: 0 };
  const world = new World(definitions, base, changes, before);
  for (const record of readChained(reader, from, upTo)) {
    world.take(record);
    if (record.seq % STEP === 0) yield record.seq;
  }
  return { ...world.end(), absent };
}

/** The log as it was, and as it would have been, side by side. */
class World {
  readonly #definitions: ReadonlyMap<string, ActorDefinition>;
  readonly #recorded = new Map<string, ActorState>();
  readonly #imagined: Imagined;
  /** Actors that are not as recorded: only they can have timers of their own. */
  readonly #strayed = new Set<string>();
  /** Records whose effects are not as recorded, or whose very coming is in doubt. */
  readonly #doubtful = new Set<number>();
  readonly #changes: Map<number, Change>;
  readonly #inserted: Inserted[];
  readonly #findings = new Findings();
  readonly #unknown = new Set<string>();
  #records = 0;
  #last: { readonly seq: number; readonly at: number };
  /** The last number of a record that was never in the log. They count down from zero, so that ids of effects stay unique. */
  #unrecorded = 0;

  constructor(
    definitions: ReadonlyMap<string, ActorDefinition>,
    base: readonly ActorState[],
    changes: readonly Change[],
    before: { readonly seq: number; readonly at: number },
  ) {
    this.#last = before;
    this.#definitions = definitions;
    this.#changes = new Map(changes.flatMap((one) => (one.kind === 'insert' ? [] : [[one.seq, one]])));
    this.#inserted = changes.filter((one) => one.kind === 'insert').sort((a, b) => a.after - b.after);
    this.#imagined = new Imagined(definitions, base);
    for (const state of base) this.#recorded.set(state.ref, structuredClone(state));
  }

  take(record: LogRecord): void {
    this.#insertBefore(record.seq);
    this.#fireUntil(record.at);
    const change = this.#changes.get(record.seq);
    const { type } = parseActorRef(record.actor);
    if (!this.#definitions.has(type)) this.#unknown.add(type);
    else this.#records += 1;
    if (change?.kind === 'drop') {
      this.#strayed.add(record.actor);
      this.#doubtful.add(record.seq);
      const { seq, at, actor, event } = record;
      this.#findings.differ({ seq, at, actor, event, kind: 'dropped', expected: decisionOf(record) });
    } else {
      this.#decideAgain(record, change?.kind === 'set' ? change.event(record.event) : record.event);
    }
    this.#recorded.set(record.actor, applyRecord(this.#recorded.get(record.actor), record));
    this.#last = record;
  }

  end(): Omit<WhatIf, 'absent'> {
    this.#insertBefore(Number.MAX_SAFE_INTEGER);
    const unanswered = [...this.#strayed].flatMap((ref): Unanswered[] => {
      const [now, then] = [this.#imagined.state(ref), this.#recorded.get(ref)];
      const effects = Object.entries(now?.effects ?? {}).filter(([id]) => !then?.effects[id]);
      const timers = Object.entries(now?.timers ?? {}).filter(
        ([name, { at }]) => then?.timers[name]?.at !== at,
      );
      return [
        ...effects.map(([, { type, at }]) => ({ actor: ref, type, at, timer: false })),
        ...timers.map(([type, { at }]) => ({ actor: ref, type, at, timer: true })),
      ];
    });
    return {
      records: this.#records,
      unknown: [...this.#unknown].sort(),
      differences: this.#findings.differences,
      remembered: this.#findings.remembered,
      untrusted: this.#findings.untrusted,
      unanswered,
      more: this.#findings.more,
    };
  }

  #decideAgain(record: LogRecord, altered: LogEvent): void {
    const { seq, at, actor: ref } = record;
    const definition = this.#definitions.get(parseActorRef(ref).type);
    if (!definition) return;
    const event = this.#imagined.eventOf(record, altered, definition);
    if (!event) return;
    const reason = this.#doubt(record);
    if (reason !== undefined) {
      this.#doubtful.add(seq);
      this.#findings.distrust({ seq, actor: ref, event: event.type, reason });
    }
    const expected = decisionOf(record);
    const before = this.#before(ref);
    const got = this.#imagined.decide(
      record,
      event,
      this.#reaches(record) ? record.outcome : '0.0',
      definition,
    );
    if (sameDecision(expected, got)) return;
    this.#strayed.add(ref);
    if (!jsonEqual(externalEffects(expected), externalEffects(got))) this.#doubtful.add(seq);
    if (expected.ignored && got.ignored) return; // in another state than recorded, and ignored there, too
    this.#findings.differ({
      seq,
      at,
      actor: ref,
      event,
      kind: 'decided',
      expected,
      got,
      ...this.#guards(before, event),
    });
  }

  /** The actor's state before its decision, which changes it in place: value and context are replaced as a whole. */
  #before(ref: string): ActorState | undefined {
    const state = this.#imagined.state(ref);
    return state && { ...state };
  }

  /** Which guards decided, for as many differences as a person reads. */
  #guards(before: ActorState | undefined, event: LogEvent): Pick<Difference, 'guards'> {
    if (!before || this.#findings.differences.length >= MOST_WITH_GUARDS) return {};
    const definition = this.#definitions.get(parseActorRef(before.ref).type);
    return definition ? { guards: candidatesOf(definition.machine, before, event) } : {};
  }

  /** Why a recorded input may not be believed any more. */
  #doubt({ actor, outcome, cause, event, stale }: LogRecord): string | undefined {
    if (outcome !== undefined) {
      if (stale) return undefined;
      const then = this.#recorded.get(actor);
      const now = this.#imagined.state(actor);
      const effect = then?.effects[outcome];
      if (!effect) {
        return this.#strayed.has(actor) && now?.timers[event.type]?.id !== outcome
          ? 'its timer is not armed any more'
          : undefined;
      }
      const asks = now?.effects[outcome];
      if (!asks) return `it answers ${effect.type}, which is not asked for any more`;
      if (asks.type !== effect.type) return `it answers ${effect.type}, and ${asks.type} is asked for now`;
      if (!jsonEqual(asks.params, effect.params))
        return `it answers ${effect.type}, which is asked for otherwise now`;
    }
    if (cause === undefined || !this.#doubtful.has(cause)) return undefined;
    return `record ${cause}, which led to it, is not as it was`;
  }

  /** Whether a recorded outcome answers what is asked now: the same timer, or an effect of the same type. */
  #reaches({ actor, outcome, event }: LogRecord): boolean {
    if (outcome === undefined) return true;
    const then = this.#recorded.get(actor);
    const now = this.#imagined.state(actor);
    const effect = then?.effects[outcome];
    if (effect) return now?.effects[outcome]?.type === effect.type;
    const timer = then?.timers[event.type];
    return timer?.id !== outcome || now?.timers[event.type]?.at === timer.at;
  }

  #insertBefore(seq: number): void {
    while (this.#inserted[0] && this.#inserted[0].after < seq) {
      const { actor, event, at = this.#last.at } = this.#inserted.shift() as Inserted;
      this.#fireUntil(at);
      this.#unrecordedEvent(actor, event, at, 'inserted');
    }
  }

  /** Timers that are armed only in the imagined history, in the order of their deadlines. */
  #fireUntil(now: number): void {
    for (;;) {
      const due = [...this.#strayed]
        .flatMap((ref) => {
          const then = this.#recorded.get(ref)?.timers;
          return Object.entries(this.#imagined.state(ref)?.timers ?? {}).flatMap(([type, { id, at }]) =>
            then?.[type]?.id === id && then[type]?.at === at ? [] : [{ ref, type, id, at }],
          );
        })
        .filter(({ at }) => at <= now)
        .sort((a, b) => a.at - b.at)[0];
      if (!due || this.#unrecorded < -MOST_UNRECORDED) return;
      this.#unrecordedEvent(due.ref, { type: due.type }, due.at, 'timer', due.id);
    }
  }

  #unrecordedEvent(
    actor: string,
    event: LogEvent,
    at: number,
    kind: Difference['kind'],
    outcome?: string,
  ): void {
    const definition = this.#definitions.get(parseActorRef(actor).type);
    if (!definition) throw new KernelError('HF_REPLAY_CHANGE', { reason: `no plugin registers ${actor}` });
    this.#unrecorded -= 1;
    const record: LogRecord = {
      seq: this.#unrecorded,
      at,
      actor,
      machine: definition.machine.id,
      version: definition.version,
      event,
      to: { value: '' },
      effects: [],
      correlation: 'what-if',
      ...(outcome !== undefined && { outcome }),
    };
    const before = this.#before(actor);
    const got = this.#imagined.decide(record, event, outcome, definition);
    this.#strayed.add(actor);
    this.#findings.differ({
      ...{ seq: this.#last.seq, at, actor, event, kind, got },
      ...this.#guards(before, event),
    });
  }
}

/** Effects that reach the world outside. */
function externalEffects({ effects }: Decision): EffectRequest[] {
  return effects.filter(({ type }) => type !== TIMER_START && type !== TIMER_CANCEL);
}
