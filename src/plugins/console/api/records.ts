import { z } from 'zod';
import { freeOf, textOf } from '../../../core/host/history/answer-text.ts';
import { contextChanges } from '../../../core/host/history/context-changes.ts';
import { explanationOf } from '../../../core/host/history/explanation.ts';
import { familyOf } from '../../../core/host/history/family.ts';
import { actorAt } from '../../../core/host/history/moments.ts';
import { pageOf } from '../../../core/host/history/pages.ts';
import { seqAt } from '../../../core/host/history/place.ts';
import { recordRows } from '../../../core/host/history/record-rows.ts';
import { shown, shownState } from '../../../core/host/history/shown.ts';
import { PAGE } from '../../../core/host/logging/redact.ts';
import { parseActorRef } from '../../../core/kernel/ids.ts';
import type { HistoryReader } from '../../../core/kernel/log/event-log.ts';
import { candidatesOf } from '../../../core/kernel/replay/guards.ts';
import { at, get, momentSeq, time, whole } from './endpoint.ts';
import { filters, limit, range, recordRow, selectionOf } from './filters.ts';

export const listRecords = get({
  path: '/api/records',
  summary: 'Records, newest first; after `after` oldest first',
  query: z.strictObject({
    at,
    after: whole(0).optional(),
    before: whole(1).optional(),
    limit: limit(100, 500),
    story: z.string().min(1).max(128).optional(),
    ...range,
    ...filters,
  }),
  answer: z.object({ records: z.array(recordRow), next: z.int().optional() }),
  run: ({ query }, { ask }) =>
    ask(async (question) => {
      const { after, before, limit, story } = query;
      const reverse = after === undefined;
      const most = Number.MAX_SAFE_INTEGER;
      const from = Math.max((after ?? 0) + 1, query.from ?? 1);
      const to = Math.min(momentSeq(question, query.at), (before ?? most) - 1, query.to ?? most);
      const selection = { ...selectionOf(query, question), correlation: story };
      const { records, end } = await pageOf(question, selection, { from, to, limit, reverse });
      return {
        records: await recordRows(records, question.words, question.signal),
        ...(end !== undefined && { next: end }),
      };
    }),
});

export const recordAtTime = get({
  path: '/api/records/at',
  summary: 'The last record at or before a time',
  query: z.strictObject({ time: whole(0) }),
  answer: z.object({ seq: z.int(), time }),
  run: ({ query }, { ask }) =>
    ask(async ({ log }) => {
      const seq = Math.max(log.firstSeq(), await seqAt(log, { at: query.time }));
      return { seq, time: log.record(seq).at };
    }),
});

/** Records that are searched for what one led to. */
const LOOK_AHEAD = 1_000;
const MOST_CONSEQUENCES = 50;
const MOST_STEPS = 30;

/** Transitions that a state had for an event, up to the one that was taken. */
export const candidates = z.array(
  z.object({
    state: z.string(),
    guard: z.string().optional(),
    target: z.string().optional(),
    taken: z.boolean(),
  }),
);

const change = z.object({ path: z.string(), from: z.unknown().optional(), to: z.unknown().optional() });
export const changes = z.array(change);
const seqs = { previous: z.int().optional(), next: z.int().optional() };

export const showRecord = get({
  path: '/api/records/{seq}',
  summary: 'One record in full: why it came, what it changed, what it led to',
  params: z.strictObject({ seq: whole(1) }),
  answer: z.object({
    at: z.int(),
    time,
    row: recordRow,
    record: z.unknown().meta({ description: 'the record as the log has it, redacted' }),
    by: z.string().optional().meta({ description: 'user of the machine whose process sent the event' }),
    explanation: z.array(z.object({ text: z.string(), seq: z.int(), time, stateSince: z.int().optional() })),
    ...seqs,
    previousOfActor: z.int().optional(),
    nextOfActor: z.int().optional(),
    cause: recordRow.optional(),
    ledTo: z.array(recordRow),
    effects: z.array(
      z.object({
        id: z.string(),
        type: z.string(),
        params: z.unknown().optional(),
        fate: z.enum(['outcome', 'cancelled', 'open', 'done']),
        seq: z.int().optional(),
        time: time.optional(),
      }),
    ),
    changes,
    candidates: candidates.meta({
      description:
        'transitions that its state had for the event, up to the one taken; none where the machine is another by now',
    }),
  }),
  run: ({ params: { seq } }, { ask, source }) =>
    ask(async ({ log, words, signal }) => {
      const family = await familyOf(log, seq, LOOK_AHEAD, signal);
      const record = shown(family.record);
      const steps = await explanationOf(log, seq, words, { signal, most: MOST_STEPS });
      const before = await actorAt(log, family.record.actor, seq - 1, signal);
      const { machine, version, actor, event } = family.record;
      const known = (await source.actors()).find((one) => one.type === parseActorRef(actor).type);
      const isOfThis = known?.version === version && known.machine.id === machine;
      const asked = before && isOfThis ? candidatesOf(known.machine, before, event) : [];
      const [earlier, later] = [
        before && shownState({ ...before }),
        await actorAt(log, family.record.actor, seq, signal),
      ];
      const rows = await recordRows(
        [
          family.record,
          ...family.children.slice(0, MOST_CONSEQUENCES),
          ...(family.cause ? [family.cause] : []),
        ],
        words,
        signal,
      );
      const [row, ...relatives] = rows;
      if (!row) throw new Error('a record has a row');
      const cause = family.cause && relatives.pop();
      const { uid } = record;
      return {
        at: seq,
        time: record.at,
        row,
        record: freeOf(record, PAGE),
        ...(uid !== undefined && { by: uid === 'unknown' ? 'unknown' : `uid ${uid}` }),
        explanation: steps.map(({ text, seq: step, at: when, stateSince }) => ({
          text: textOf(text, 2_000),
          seq: step,
          time: when,
          ...(stateSince !== undefined && { stateSince }),
        })),
        ...neighbours(log, seq, undefined),
        ...ofActor(neighbours(log, seq, family.record.actor)),
        ...(cause && { cause }),
        ledTo: relatives,
        effects: family.effects.map(({ id, effect, fate }, index) => {
          const params = record.effects[index]?.params;
          return {
            id,
            type: textOf(effect.type),
            ...(params !== undefined && { params: freeOf(params) }),
            fate: fate.kind,
            ...('record' in fate && { seq: fate.record.seq, time: fate.record.at }),
          };
        }),
        changes: contextChanges(earlier?.context, later && shownState(later).context),
        candidates: asked.map((one) => ({ ...one })),
      };
    }),
});

/** The records before and after one, of an actor where one is given. */
function neighbours(log: HistoryReader, seq: number, actor: string | undefined) {
  const of = actor === undefined ? {} : { actor };
  const before = firstOf(log.pages({ ...of, to: seq - 1, reverse: true, limit: 1 }));
  const after = firstOf(log.pages({ ...of, from: seq + 1, limit: 1 }));
  return { ...(before && { previous: before.seq }), ...(after && { next: after.seq }) };
}

function ofActor({ previous, next }: { previous?: number; next?: number }) {
  return {
    ...(previous !== undefined && { previousOfActor: previous }),
    ...(next !== undefined && { nextOfActor: next }),
  };
}

function firstOf<T>(pages: Iterable<T[]>): T | undefined {
  for (const [first] of pages) return first;
  return undefined;
}
