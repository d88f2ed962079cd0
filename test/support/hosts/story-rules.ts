import { isDeepStrictEqual } from 'node:util';
import { takeoverMarkOf } from '../../../src/core/kernel/actors/takeover-mark.ts';
import { type ActorState, applyRecord } from '../../../src/core/kernel/actors/transition.ts';
import { isObject } from '../../../src/core/kernel/json.ts';
import { ADOPT, type LogRecord, parseRecord } from '../../../src/core/kernel/log/record.ts';
import type { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { type Takeover, untoldAfter } from '../../../src/machines/cluster/singleton.ts';
import { numberOf } from '../../../src/plugins/cluster/leases/ledger.ts';
import { takeoverEvent } from '../../../src/plugins/cluster/mirror/takeover-events.ts';
import type { Stroke } from './pump-plugin.ts';

type Logs = ReadonlyMap<string, SqliteReader>;

const PUMP = 'pump.pump/main';
const SINGLETON = 'cluster.singleton/pump';

interface StoryRecord {
  readonly host: string;
  readonly record: LogRecord;
}

/**
 * Holds the logs of all hosts against each other and against what the pump did:
 * - Each takeover stands on a record that its source still has, and takes exactly the state that this record left.
 * - The story of the pump, from takeover to takeover, asks for each stroke once and hears of its end once, in order.
 * - What was done stands in that story, by the id under which it was done.
 * - What a host recorded beside it is told as an orphaned branch.
 */
export function storyViolations(logs: Logs, journal: readonly Stroke[]): string[] {
  const found: string[] = [];
  const records = new Map([...logs].map(([host, log]) => [host, recordsOf(log, PUMP)]));
  for (const [host, own] of records)
    for (const record of own) found.push(...takeoverViolations(logs, records, host, record));
  const story = storyOf(logs, records, found);
  const strokes = strokesOf(story, found);
  for (const { stroke, id, phase } of journal) {
    const told = strokes.get(stroke);
    if (told?.id !== id) found.push(`stroke ${stroke} was ${phase} as ${id}; the story has ${told?.id}`);
    else if (phase === 'done' && !told.isDone && stroke < strokes.size)
      found.push(`the story does not say that stroke ${stroke} was done`);
  }
  const told = new Set(story.map(({ host, record }) => `${host}:${record.seq}`));
  for (const [host, own] of records) {
    const beside = own.filter(({ seq }) => !told.has(`${host}:${seq}`)).map(({ seq }) => seq);
    const log = logs.get(host);
    if (log) found.push(...orphanViolations(host, log, beside));
  }
  return found;
}

function recordsOf(log: SqliteReader, actor: string): LogRecord[] {
  return [...log.pages({ actor })].flat().map(({ seq, body }) => parseRecord(seq, body));
}

function takeoverViolations(
  logs: Logs,
  records: ReadonlyMap<string, readonly LogRecord[]>,
  host: string,
  record: LogRecord,
): string[] {
  if (record.event.type !== ADOPT) return [];
  const adopted = takeoverMarkOf(record);
  const what = `the takeover ${host}:${record.seq} from ${adopted?.host}:${adopted?.seq}`;
  const source = logs.get(adopted?.host ?? '');
  if (!adopted || !source) return [`${what} names nobody's log`];
  if (source.hashOf(adopted.seq) !== adopted.hash) return [`${what}: that host has another record there`];
  const left = (records.get(adopted.host) ?? [])
    .filter(({ seq }) => seq <= adopted.seq)
    .reduce<ActorState | undefined>((state, one) => applyRecord(state, one), undefined);
  const taken = record.event.state;
  if (!left || !isObject(taken)) return [`${what}: there was nothing to take over`];
  const timesOf = (timers: object) =>
    Object.fromEntries(Object.entries(timers).map(([name, { at }]) => [name, at]));
  const { value, context, version, effects, timers } = left;
  const wanted = { value, context, version, effects, timers: timesOf(timers) };
  const is = {
    ...{ value: taken.value, context: taken.context, version: taken.version, effects: taken.effects },
    timers: timesOf(isObject(taken.timers) ? taken.timers : {}),
  };
  const plain = (state: object) => JSON.parse(JSON.stringify(state));
  if (isDeepStrictEqual(plain(is), plain(wanted))) return [];
  return [`${what} is of ${JSON.stringify(is)}; that host left ${JSON.stringify(wanted)}`];
}

/** From the newest takeover back to the first record. */
function storyOf(
  logs: Logs,
  records: ReadonlyMap<string, readonly LogRecord[]>,
  found: string[],
): StoryRecord[] {
  const end = newestHolder(logs, records);
  const story: StoryRecord[][] = [];
  let [host, to]: [string, number] = [end, Number.MAX_SAFE_INTEGER];
  for (let steps = 0; ; steps += 1) {
    const own = (records.get(host) ?? []).filter(({ seq }) => seq <= to);
    const index = own.findLastIndex(({ event }) => event.type === ADOPT);
    story.unshift(own.slice(Math.max(index, 0)).map((record) => ({ host, record })));
    const begin = own[index];
    const adopted = begin && takeoverMarkOf(begin);
    if (!adopted) break;
    if (steps > 10_000) {
      found.push('the takeovers run in a circle');
      break;
    }
    [host, to] = [adopted.host, adopted.seq];
  }
  return story.flat();
}

/** The host whose newest term with records of the pump has the highest token. */
function newestHolder(logs: Logs, records: ReadonlyMap<string, readonly LogRecord[]>): string {
  let [newest, holder] = [-1, ''];
  for (const [host, log] of logs) {
    const terms = recordsOf(log, SINGLETON).filter(({ event }) => event.type === 'TAKING');
    for (const [index, { seq, event }] of terms.entries()) {
      const to = terms[index + 1]?.seq ?? Number.MAX_SAFE_INTEGER;
      const didSomething = records.get(host)?.some((one) => one.seq > seq && one.seq < to);
      if (didSomething && numberOf(String(event.token)) > newest)
        [newest, holder] = [numberOf(String(event.token)), host];
    }
  }
  return holder;
}

/** The takeovers by a host of which, as far as it knows, the hosts before do not know yet. */
export function untoldIn(log: SqliteReader): readonly Takeover[] {
  return recordsOf(log, SINGLETON).reduce<readonly Takeover[]>((untold, { event }) => {
    const { data } = takeoverEvent.safeParse(event);
    return (data && untoldAfter(untold, data)) ?? untold;
  }, []);
}

interface ToldStroke {
  readonly id: string;
  isDone: boolean;
}

function strokesOf(story: readonly StoryRecord[], found: string[]): ReadonlyMap<number, ToldStroke> {
  const strokes = new Map<number, ToldStroke>();
  for (const { host, record } of story) {
    const { seq, event, effects, stale, ignored, failed } = record;
    const where = `${host}:${seq}`;
    if (failed !== undefined) found.push(`${where}: the machine of the pump failed: ${failed}`);
    if (event.type === ADOPT || stale) continue;
    if (event.type === 'effect.failed') found.push(`${where}: a stroke failed: ${JSON.stringify(event)}`);
    if (event.type === 'STROKE_DONE') {
      const stroke = strokes.get(Number(event.stroke));
      if (!stroke || stroke.isDone || ignored)
        found.push(`${where}: the end of stroke ${event.stroke} comes ${stroke ? 'again' : 'too early'}`);
      if (stroke) stroke.isDone = true;
    }
    for (const [index, { type, params }] of effects.entries()) {
      if (type !== 'pump.stroke' || !isObject(params)) continue;
      const number = Number(params.stroke);
      if (number !== strokes.size + 1)
        found.push(`${where}: stroke ${number} is asked for behind ${strokes.size}`);
      strokes.set(number, { id: `${host}:${seq}.${index}`, isDone: false });
    }
  }
  return strokes;
}

/** @param beside seqs of its records of the pump that are not in the story */
function orphanViolations(host: string, log: SqliteReader, beside: readonly number[]): string[] {
  const told = recordsOf(log, SINGLETON).filter(({ event }) => event.type === 'ORPHANED');
  const isTold = (seq: number) =>
    told.some(({ event }) => Number(event.from) <= seq && seq <= Number(event.to));
  const missing = beside.filter((seq) => !isTold(seq));
  if (missing.length === 0) return [];
  return [`${host} has ${missing.length} records beside the story that nobody tells of: ${missing}`];
}

/** What the hosts recorded of the singleton, oldest first. @param aheadMs by how much the wall clock of a host is ahead */
export function timelineOf(logs: Logs, aheadMs: (host: string) => number): string[] {
  const all = [...logs].flatMap(([host, log]) => {
    const takeovers = recordsOf(log, PUMP).filter(({ event }) => event.type === ADOPT);
    return [...recordsOf(log, SINGLETON), ...takeovers].map((record) => {
      const { state: _, ...event } = record.event;
      const at = record.at - aheadMs(host);
      return {
        at,
        text: `${new Date(at).toISOString().slice(11, 23)} ${host}:${record.seq} ${JSON.stringify(event)}`,
      };
    });
  });
  return all.sort((a, b) => a.at - b.at).map(({ text }) => text);
}
