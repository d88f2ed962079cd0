import { z } from 'zod';
import { textOf } from '../../../core/host/history/answer-text.ts';
import { contextChanges } from '../../../core/host/history/context-changes.ts';
import { Pace } from '../../../core/host/history/pace.ts';
import { shownState } from '../../../core/host/history/shown.ts';
import { stateName } from '../../../core/host/terminal.ts';
import type { ActorState } from '../../../core/kernel/actors/transition.ts';
import { at, get, momentSeq, time, whole } from './endpoint.ts';
import { changes } from './records.ts';

/** Actors that are listed. */
const MOST = 300;

const moment = z.object({ at: z.int(), time });

export const compare = get({
  path: '/api/compare',
  summary: 'How the actors differ between two moments',
  query: z.strictObject({ from: whole(1), to: whole(1).optional(), at }),
  answer: z.object({
    from: moment,
    to: moment,
    differing: z.int(),
    actors: z.array(
      z.object({
        id: z.string(),
        change: z.enum(['new', 'gone', 'changed']),
        stateFrom: z.string().optional(),
        stateTo: z.string().optional(),
        lastSeq: z.int().meta({ description: 'its newest record of the two moments' }),
        changes,
      }),
    ),
  }),
  run: ({ query }, { ask, moments }) =>
    ask(async (question) => {
      const { log, signal } = question;
      const [before, after] = [
        await moments.at(log, momentSeq(question, query.from), signal),
        await moments.at(log, momentSeq(question, query.to ?? query.at), signal),
      ];
      const then = new Map(before.actors.map((state) => [state.ref, state]));
      const now = new Map(after.actors.map((state) => [state.ref, state]));
      const refs = [...new Set([...then.keys(), ...now.keys()])]
        .sort()
        .filter((ref) => then.get(ref)?.seq !== now.get(ref)?.seq);
      const pace = new Pace(signal);
      const actors: ReturnType<typeof differenceOf>[] = [];
      for (const ref of refs.slice(0, MOST)) {
        actors.push(differenceOf(ref, then.get(ref), now.get(ref)));
        await pace.next();
      }
      return {
        from: { at: before.seq, time: before.at },
        to: { at: after.seq, time: after.at },
        differing: refs.length,
        actors,
      };
    }),
});

function differenceOf(ref: string, before: ActorState | undefined, after: ActorState | undefined) {
  return {
    id: textOf(ref),
    change: !before ? ('new' as const) : !after ? ('gone' as const) : ('changed' as const),
    ...(before && { stateFrom: textOf(stateName(before.value)) }),
    ...(after && { stateTo: textOf(stateName(after.value)) }),
    lastSeq: Math.max(before?.seq ?? 0, after?.seq ?? 0),
    changes: contextChanges(before && shownState(before).context, after && shownState(after).context),
  };
}
