import { z } from 'zod';
import { freeOf, textOf } from '../../core/host/history/answer-text.ts';
import { differencesOf, enteredState, waits } from '../../core/host/history/entered-state.ts';
import { runSteps } from '../../core/host/history/pace.ts';
import { actorMatcher } from '../../core/host/history/select.ts';
import { shownState } from '../../core/host/history/shown.ts';
import { stateName } from '../../core/host/terminal.ts';
import { type Moment, momentSteps } from '../../core/kernel/actors/recover.ts';
import { fitting } from './output.ts';
import { cursorOf, isoOf, positionOf, seqOf } from './places.ts';
import { type Answer, cursor, defineTool, place, type Question } from './tool.ts';

const actor = z
  .string()
  .min(1)
  .max(512)
  .describe(
    'address (reconciler.leg/eth1.20), type (reconciler.leg), its last word (leg), or a key; * stands for anything',
  );

const page = { nextCursor: z.string().optional().describe('there are more') };
const limit = z.int().min(1).max(200);

/** Every actor at a place. */
export async function momentOf({ log, now, signal }: Question, text: string): Promise<Moment> {
  return runSteps(momentSteps(log, await seqOf(log, text, now)), signal);
}

const states = z.object({
  record: z.int().describe('the newest record at that time'),
  at: z.string(),
  actors: z.array(
    z.object({
      actor: z.string(),
      state: z.string(),
      since: z.string().optional().describe('when it entered the state; absent: before the log begins'),
      sinceRecord: z.int().optional(),
      lastRecord: z.int().describe('the newest record of the actor: explain_record says why'),
      waitsFor: z.array(z.string()),
      context: z.unknown(),
    }),
  ),
  ...page,
});

export const actorState = defineTool({
  name: 'actor_state',
  title: 'State of actors at a time',
  description:
    'Shows in which state actors were at any time, since when, what they knew (context) and what they waited for (timers, ' +
    'open effects). Use it when you know which actor matters; list_actors shows which there are.',
  input: z.object({ actor, at: place.default('now'), limit: limit.default(10), cursor }),
  output: states,
  answer: ({ cursor: given, limit, ...asked }, question) =>
    statesAnswer(asked, { begin: positionOf(given, asked) ?? 0, limit }, question),
});

/** @param page `begin`: so many actors are left out */
export async function statesAnswer(
  asked: { readonly actor: string; readonly at: string },
  { begin, limit }: { readonly begin: number; readonly limit: number },
  question: Question,
): Promise<Answer<z.output<typeof states>>> {
  const moment = await momentOf(question, asked.at);
  const isWanted = actorMatcher(asked.actor);
  const all = moment.actors.filter(({ ref }) => isWanted(ref));
  const wanted: z.output<typeof states>['actors'] = [];
  for (const raw of all.slice(begin, begin + limit)) {
    const { stateSince, ...state } = await enteredState(question.log, shownState(raw), question.signal);
    wanted.push({
      actor: textOf(state.ref),
      state: `${textOf(stateName(state.value))}${state.done ? ' (final)' : ''}`,
      ...(stateSince && { since: isoOf(stateSince.at), sinceRecord: stateSince.seq }),
      lastRecord: state.seq,
      waitsFor: waits(state, moment.at).map((one) => textOf(one)),
      context: freeOf(state.context),
    });
  }
  const actors = fitting(wanted, limit);
  const next = begin + actors.length;
  return {
    fields: {
      record: moment.seq,
      at: isoOf(moment.at),
      actors: [...actors],
      ...(next < all.length && { nextCursor: cursorOf(asked, next) }),
    },
  };
}

export const whatChanged = defineTool({
  name: 'what_changed',
  title: 'What changed between two times',
  description:
    'Compares two times: which actors differ, their states before and after, and what changed of what they knew. Use it to ' +
    'narrow "it worked at 22:00 and not at 07:00" down to a few actors. Next: search_stories for those actors in that time.',
  input: z.object({
    from: place,
    to: place.default('now'),
    actor: actor.optional(),
    limit: limit.default(50),
    cursor,
  }),
  output: z.object({
    from: z.object({ record: z.int(), at: z.string() }),
    to: z.object({ record: z.int(), at: z.string() }),
    differing: z.int().describe('how many actors differ'),
    actors: z.array(
      z.object({
        actor: z.string(),
        from: z.string().optional().describe('absent: the actor did not exist'),
        to: z.string(),
        context: z.unknown().optional().describe('what changed; null: the field was removed'),
        lastRecord: z.int(),
      }),
    ),
    ...page,
  }),
  async answer({ cursor: given, limit, ...asked }, question) {
    const begin = positionOf(given, asked) ?? 0;
    const moments = [await momentOf(question, asked.from), await momentOf(question, asked.to)];
    const [before, after] = moments.sort((a, b) => a.seq - b.seq) as [Moment, Moment];
    const isWanted = asked.actor === undefined ? () => true : actorMatcher(asked.actor);
    const last = new Map(after.actors.map(({ ref, seq }) => [ref, seq]));
    const all = differencesOf(before, after).filter(({ ref }) => isWanted(ref));
    const wanted = all.slice(begin, begin + limit).map(({ ref, from, to, context }) => ({
      actor: textOf(ref),
      ...(from !== undefined && { from: textOf(stateName(from)) }),
      to: textOf(stateName(to)),
      ...(context !== undefined && { context: freeOf(context) }),
      lastRecord: last.get(ref) ?? 0,
    }));
    const actors = fitting(wanted, limit);
    const next = begin + actors.length;
    return {
      fields: {
        from: { record: before.seq, at: isoOf(before.at) },
        to: { record: after.seq, at: isoOf(after.at) },
        differing: all.length,
        actors: [...actors],
        ...(next < all.length && { nextCursor: cursorOf(asked, next) }),
      },
    };
  },
});

export const listActors = defineTool({
  name: 'list_actors',
  title: 'List actors',
  description:
    'Lists the actors that there were at a time, each with its state: what this installation looks after, under which ' +
    'addresses. Use it to find the address of an interface, a route, a key or a monitor. Next: actor_state or search_stories.',
  input: z.object({ match: actor.optional(), at: place.default('now'), limit: limit.default(100), cursor }),
  output: z.object({
    record: z.int(),
    at: z.string(),
    total: z.int(),
    actors: z.array(
      z.object({ actor: z.string(), state: z.string(), lastRecord: z.int(), lastAt: z.string() }),
    ),
    ...page,
  }),
  async answer({ cursor: given, limit, ...asked }, question) {
    const begin = positionOf(given, asked) ?? 0;
    const moment = await momentOf(question, asked.at);
    const isWanted = asked.match === undefined ? () => true : actorMatcher(asked.match);
    const all = moment.actors.filter(({ ref }) => isWanted(ref));
    const wanted = all.slice(begin, begin + limit).map(({ ref, value, done, seq, at }) => ({
      actor: textOf(ref),
      state: `${textOf(stateName(value))}${done ? ' (final)' : ''}`,
      lastRecord: seq,
      lastAt: isoOf(at),
    }));
    const actors = fitting(wanted, limit);
    const next = begin + actors.length;
    return {
      fields: {
        record: moment.seq,
        at: isoOf(moment.at),
        total: all.length,
        actors: [...actors],
        ...(next < all.length && { nextCursor: cursorOf(asked, next) }),
      },
    };
  },
});
