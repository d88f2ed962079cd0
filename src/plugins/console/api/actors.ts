import { z } from 'zod';
import { freeOf, textOf } from '../../../core/host/history/answer-text.ts';
import { contextChanges } from '../../../core/host/history/context-changes.ts';
import { enteredState } from '../../../core/host/history/entered-state.ts';
import { actorAt, timeAt } from '../../../core/host/history/moments.ts';
import { Pace } from '../../../core/host/history/pace.ts';
import { eventName, recordRows } from '../../../core/host/history/record-rows.ts';
import { actorMatcher } from '../../../core/host/history/select.ts';
import { shownState } from '../../../core/host/history/shown.ts';
import { PAGE } from '../../../core/host/logging/redact.ts';
import { stateName } from '../../../core/host/terminal.ts';
import type { ActorState } from '../../../core/kernel/actors/transition.ts';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import type { HistoryReader } from '../../../core/kernel/log/event-log.ts';
import { delayOf, parseRecord } from '../../../core/kernel/log/record.ts';
import { ConsoleError } from '../errors.ts';
import { at, get, momentSeq, time, whole } from './endpoint.ts';
import { limit, recordRow } from './filters.ts';
import { changes } from './records.ts';

const stateText = ({ value }: Pick<ActorState, 'value'>): string => textOf(stateName(value));

/** An actor is found by a part of its address in any case, or by a pattern with `*`. */
function matcherOf(text: string | undefined): (ref: string) => boolean {
  if (text === undefined) return () => true;
  if (text.includes('*')) return actorMatcher(text);
  const wanted = text.toLowerCase();
  return (ref) => ref.toLowerCase().includes(wanted);
}

export const listActors = get({
  path: '/api/actors',
  summary: 'The actors that there were at a moment, by address',
  query: z.strictObject({
    at,
    text: z.string().min(1).max(200).optional(),
    limit: limit(100, 500),
    after: z.string().min(1).max(512).optional(),
  }),
  answer: z.object({
    at: z.int(),
    time,
    total: z.int(),
    actors: z.array(
      z.object({
        id: z.string(),
        plugin: z.string(),
        machine: z.string(),
        state: z.string(),
        value: z.unknown(),
        done: z.boolean(),
        lastSeq: z.int(),
        lastTime: time,
        lastEvent: z.string(),
        openEffects: z.int(),
        timers: z.int(),
      }),
    ),
    next: z.string().optional(),
  }),
  run: ({ query: { at: wanted, text, limit: most, after = '' } }, { ask, moments }) =>
    ask(async (question) => {
      const { log, signal } = question;
      const moment = await moments.at(log, momentSeq(question, wanted), signal);
      const isWanted = matcherOf(text);
      const all = moment.actors.filter(({ ref }) => isWanted(ref));
      const begin = all.findIndex(({ ref }) => ref > after);
      const page = begin < 0 ? [] : all.slice(begin, begin + most);
      const next = begin >= 0 && begin + most < all.length ? page.at(-1)?.ref : undefined;
      return {
        at: moment.seq,
        time: moment.at,
        total: all.length,
        actors: page.map((state) => ({
          id: textOf(state.ref),
          plugin: textOf(state.ref.split('.', 1)[0] ?? ''),
          machine: textOf(state.machine),
          state: stateText(state),
          value: freeOf(state.value),
          done: state.done,
          lastSeq: state.seq,
          lastTime: state.at,
          lastEvent: lastEvent(log, state.seq),
          openEffects: Object.keys(state.effects).length,
          timers: Object.keys(state.timers).length,
        })),
        ...(next !== undefined && { next }),
      };
    }),
});

/** The record may be in no part of the log that is still here. */
function lastEvent(log: HistoryReader, seq: number): string {
  return seq >= log.firstSeq() ? eventName(log.record(seq).event.type) : '';
}

/** Records of an actor whose transitions are counted, the newest. */
const COUNTED = 2_000;

export const showActor = get({
  path: '/api/actors/{id}',
  summary: 'One actor at a moment: its state, its context, what it waits for, and its transitions',
  params: z.strictObject({
    id: z
      .string()
      .regex(/^[^/]+\/.+/s, 'an address such as lamp.bulb/hall')
      .max(512),
  }),
  query: z.strictObject({
    at,
    from: whole(1).optional().meta({ description: 'transitions are counted from this record on' }),
  }),
  answer: z.object({
    at: z.int(),
    time,
    id: z.string(),
    type: z.string(),
    machine: z.string(),
    version: z.int(),
    state: z.string(),
    value: z.unknown(),
    done: z.boolean(),
    since: z.object({ seq: z.int(), time }).optional().meta({ description: 'absent: before the log begins' }),
    context: z.unknown(),
    effects: z.array(z.object({ id: z.string(), type: z.string(), seq: z.int(), time })),
    timers: z.array(z.object({ id: z.string(), name: z.string(), at: time, armedAt: time })),
    last: recordRow.optional(),
    changes: changes.meta({ description: 'what its last record changed of the context' }),
    taken: z.array(
      z.object({ from: z.string().optional(), event: z.string(), to: z.string(), count: z.int() }),
    ),
    takenFrom: z.int().meta({ description: 'transitions are counted from this record on' }),
  }),
  run: ({ params: { id }, query }, { ask }) =>
    ask(async (question) => {
      const { log, words, signal } = question;
      const seq = momentSeq(question, query.at);
      const state = await actorAt(log, id, seq, signal);
      if (!state) throw new ConsoleError('HF_CONSOLE_MISSING', { what: 'actor', name: textOf(id, 520) });
      const { stateSince, ...own } = await enteredState(log, state, signal);
      const context = shownState(own).context;
      const isHere = state.seq >= log.firstSeq();
      const before = isHere ? await actorAt(log, id, state.seq - 1, signal) : undefined;
      const [last] = isHere ? await recordRows([log.record(state.seq)], words) : [];
      const { taken, from } = await takenBy(log, id, { from: query.from ?? 1, to: seq }, signal);
      return {
        at: seq,
        time: timeAt(log, seq),
        id: textOf(id),
        type: textOf(parseActorRef(id).type),
        machine: textOf(state.machine),
        version: state.version,
        state: stateText(state),
        value: freeOf(state.value),
        done: state.done,
        ...(stateSince && { since: { seq: stateSince.seq, time: stateSince.at } }),
        context: freeOf(context, PAGE),
        effects: Object.entries(state.effects).map(([effect, { type, at: asked }]) => ({
          id: effect,
          type: textOf(type),
          seq: Number.parseInt(effect, 10),
          time: asked,
        })),
        timers: Object.entries(state.timers).map(([name, { id: timer, at: due, armedAt }]) => ({
          id: timer,
          name: textOf(delayOf(name) ?? name),
          at: due,
          armedAt,
        })),
        ...(last && { last }),
        changes: isHere ? contextChanges(before && shownState(before).context, context) : [],
        taken,
        takenFrom: from,
      };
    }),
});

async function takenBy(
  log: HistoryReader,
  actor: string,
  range: { readonly from: number; readonly to: number },
  signal: AbortSignal,
) {
  const counts = new Map<string, { from?: string; event: string; to: string; count: number }>();
  const pace = new Pace(signal);
  let [left, from] = [COUNTED, Math.max(range.from, log.firstSeq())];
  for (const page of log.pages({ actor, ...range, reverse: true, limit: COUNTED })) {
    for (const raw of page) {
      const { event, from: before, to, ignored, stale } = parseRecord(raw.seq, raw.body);
      left -= 1;
      from = left === 0 ? raw.seq : from;
      if (left < 0) break;
      if (ignored || stale) continue;
      const one = {
        ...(before !== undefined && { from: textOf(stateName(before)) }),
        event: eventName(event.type),
        to: textOf(stateName(to.value)),
      };
      const key = JSON.stringify(one);
      const known = counts.get(key) ?? { ...one, count: 0 };
      known.count += 1;
      counts.set(key, known);
      await pace.next();
    }
    if (left <= 0) break;
  }
  return { taken: [...counts.values()].sort((a, b) => b.count - a.count), from };
}
