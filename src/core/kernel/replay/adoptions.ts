import { savedStates } from '../actors/recover.ts';
import { type ActorState, applyRecord } from '../actors/transition.ts';
import { parseActorRef } from '../ids.ts';
import { isObject, jsonEqual } from '../json.ts';
import { readChained } from '../log/chain.ts';
import type { HistoryReader } from '../log/event-log.ts';
import { ADOPT, type LogRecord, parseRecord } from '../log/record.ts';

/** A record by which an actor went on from what another host left, and the log does not say so. */
export interface WrongAdoption {
  readonly host: string;
  readonly record: LogRecord;
  /** Why, as the end of a sentence. */
  readonly reason: string;
}

/** What a comparison of takeovers found. */
export interface AdoptionReport {
  /** Actors that were taken over. */
  readonly adoptions: number;
  readonly wrong: readonly WrongAdoption[];
  /** Those whose source is not here any more, or not yet. */
  readonly unknown: number;
}

interface Adoption {
  readonly host: string;
  readonly record: LogRecord;
  readonly seq: number;
  readonly hash: string;
}

/**
 * Checks that what hosts took over from one another is what the other's log leads to at that record. Yields after each part of
 * the work.
 *
 * @param logs by the names of their hosts
 * @throws HF_LOG_CORRUPT a record is not what was written
 */
export function* adoptionSteps(logs: ReadonlyMap<string, HistoryReader>): Generator<number, AdoptionReport> {
  const bySource = new Map<string, Adoption[]>();
  let adoptions = 0;
  for (const [host, log] of logs) {
    for (const page of log.pages()) {
      for (const { seq, body } of page) {
        if (!body.includes(`"${ADOPT}"`)) continue;
        const record = parseRecord(seq, body);
        if (record.event.type !== ADOPT) continue;
        const source = String(record.event.host);
        const adoption = { host, record, seq: Number(record.event.seq), hash: String(record.event.hash) };
        bySource.set(source, [...(bySource.get(source) ?? []), adoption]);
        adoptions += 1;
      }
      yield adoptions;
    }
  }
  const wrong: WrongAdoption[] = [];
  let unknown = 0;
  for (const [source, found] of bySource) {
    const log = logs.get(source);
    const there = log ? found.filter(({ seq }) => isThere(log, seq)) : [];
    unknown += found.length - there.length;
    if (log) wrong.push(...(yield* compare(log, there)));
  }
  return { adoptions, wrong, unknown };
}

function isThere(log: HistoryReader, seq: number): boolean {
  return seq >= log.firstSeq() - 1 && seq <= log.lastSeq();
}

/** Follows the log of one host once, and compares at each record from which another one went on. */
function* compare(log: HistoryReader, adoptions: readonly Adoption[]): Generator<number, WrongAdoption[]> {
  const wrong: WrongAdoption[] = [];
  const open = adoptions.toSorted((a, b) => a.seq - b.seq);
  const first = Math.max(1, log.firstSeq());
  const states = new Map(savedStates(log, first - 1).map((state) => [state.ref, state]));
  const takeAt = (seq: number) => {
    while (open[0] && open[0].seq <= seq) {
      const { host, record, hash } = open.shift() as Adoption;
      const reason =
        hash === log.hashBefore(seq + 1)
          ? difference(states.get(record.actor), record)
          : 'the other host has another record there';
      if (reason !== undefined) wrong.push({ host, record, reason });
    }
  };
  takeAt(first - 1);
  const last = open.at(-1)?.seq ?? 0;
  if (last < first) return wrong;
  for (const record of readChained(log, first, last)) {
    states.set(record.actor, applyRecord(states.get(record.actor), record));
    takeAt(record.seq);
    if (record.seq % 500 === 0) yield record.seq;
  }
  return wrong;
}

/** @returns what an adoption has otherwise than the state that it went on from; undefined when nothing */
function difference(state: ActorState | undefined, { actor, event }: LogRecord): string | undefined {
  const { state: taken } = event;
  if (!isObject(taken)) return 'it holds no state';
  if (!state) return `the other host has no ${parseActorRef(actor).type} of that name`;
  const timers = (of: unknown) =>
    isObject(of)
      ? Object.fromEntries(Object.entries(of).map(([name, timer]) => [name, isObject(timer) && timer.at]))
      : of;
  const fields: readonly [string, unknown, unknown][] = [
    ['machine', taken.machine, state.machine],
    ['version', taken.version, state.version],
    ['state', taken.value, state.value],
    ['context', taken.context, state.context],
    ['end', taken.done ?? false, state.done],
    ['timers', timers(taken.timers), timers(state.timers)],
    ['effects', taken.effects, state.effects],
  ];
  const differing = fields.filter(([, left, right]) => !jsonEqual(left, right)).map(([name]) => name);
  return differing.length === 0
    ? undefined
    : `its ${differing.join(' and ')} differ from what the other host left`;
}
