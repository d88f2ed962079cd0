import { z } from 'zod';
import { freeOf } from '../../../core/host/history/answer-text.ts';
import { namesOf, touches, valueAt } from '../../../core/host/history/context-changes.ts';
import { actorAt } from '../../../core/host/history/moments.ts';
import { Pace } from '../../../core/host/history/pace.ts';
import type { LogQuestion } from '../../../core/host/history/questions.ts';
import { eventName } from '../../../core/host/history/record-rows.ts';
import { shownState } from '../../../core/host/history/shown.ts';
import { jsonEqual } from '../../../core/kernel/json.ts';
import { type LogRecord, parseRecord } from '../../../core/kernel/log/record.ts';
import { at, get, momentSeq, requestRefused, time, whole } from './endpoint.ts';
import { limit } from './filters.ts';

export const listChanges = get({
  path: '/api/changes',
  summary: 'Which records changed a value of an actor, newest first; after `after` oldest first',
  query: z.strictObject({
    at,
    actor: z
      .string()
      .regex(/^[^/]+\/.+/s, 'an address such as lamp.bulb/hall')
      .max(512),
    path: z
      .string()
      .max(500)
      .default('')
      .meta({ description: 'of a value of its context, e.g. legs["eth1.20"].since; empty is all of it' }),
    after: whole(0).optional(),
    before: whole(1).optional(),
    limit: limit(20, 50),
  }),
  answer: z.object({
    changes: z.array(
      z.object({
        seq: z.int(),
        time,
        event: z.string(),
        from: z.unknown().optional(),
        to: z.unknown().optional(),
      }),
    ),
    next: z.int().optional(),
  }),
  run: ({ query }, { ask }) =>
    ask(async (question) => {
      const { actor, path, after, before, limit: most } = query;
      const names = namesOf(path);
      if (!names) throw requestRefused('path: it is no path such as legs["eth1.20"].since');
      const { log, enoughAt } = question;
      const reverse = after === undefined;
      const newest = Math.min(momentSeq(question, query.at), (before ?? Number.MAX_SAFE_INTEGER) - 1);
      const pace = new Pace(question.signal);
      const changes: Change[] = [];
      for (const page of log.pages({ actor, from: (after ?? 0) + 1, to: newest, reverse })) {
        for (const raw of page) {
          const record = parseRecord(raw.seq, raw.body);
          await pace.next();
          const change = touches(record.to.context, names) && (await changeBy(record, names, question));
          if (change) changes.push(change);
          if (changes.length === most || performance.now() > enoughAt) return { changes, next: raw.seq };
        }
      }
      return { changes };
    }),
});

interface Change {
  readonly seq: number;
  readonly time: number;
  readonly event: string;
  readonly from?: unknown;
  readonly to?: unknown;
}

/** @returns undefined where the value is the same before and after the record */
async function changeBy(
  { seq, at: when, actor, event }: LogRecord,
  names: readonly string[],
  { log, signal }: LogQuestion,
): Promise<Change | undefined> {
  const before = await actorAt(log, actor, seq - 1, signal);
  const after = await actorAt(log, actor, seq, signal);
  if (jsonEqual(valueAt(before?.context, names), valueAt(after?.context, names))) return undefined;
  const [from, to] = [before, after].map((state) => state && valueAt(shownState(state).context, names));
  return {
    seq,
    time: when,
    event: eventName(event.type),
    ...(from !== undefined && { from: freeOf(from) }),
    ...(to !== undefined && { to: freeOf(to) }),
  };
}
