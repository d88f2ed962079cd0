import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';
import type { AnswerParams, ForwardParams } from './call-shapes.ts';
import { afterCall, afterClockSet, afterEnd, afterRefusal } from './key-counters.ts';
import {
  calling,
  confine,
  forward,
  judged,
  type KeyArgs,
  misplacedIn,
  refuse,
  reply,
  replyToReading,
  verdictOf,
  want,
  warn,
} from './key-effects.ts';
import { heardOf, isNews } from './key-heard.ts';
import type { ConfineParams, KeyContext, KeyEvent, KeyReply, WantParams } from './key-shapes.ts';
import { granted } from './shares.ts';

/** A client that does it with every call must not become a flood of alerts. */
const WARN_EVERY_MS = 60_000;
const toWarn = ({ context, event }: KeyArgs): boolean => {
  if (misplacedIn(event) === undefined) return false;
  const passed = calling(event).at - (context.warnedAt ?? Number.NEGATIVE_INFINITY);
  return passed >= WARN_EVERY_MS || passed < 0; // below zero the clock was set back
};

const asksFor = ({ uses }: ReturnType<typeof judged>): boolean => uses.some(({ asks }) => asks);

/** The place of an event among all messages to every host; an imported log may hold anything. */
const orderOf = (event: KeyEvent): number | undefined =>
  'order' in event && Number.isFinite(event.order) ? event.order : undefined;

/** It was taken already. */
const known = { guard: 'isKnown' } as const;

/**
 * One virtual key of the gateway: what it may reach, and every call it made (G3, G5, G6, G9, G16, G19).
 *
 * A call is two records: CALL, whose effect says what was decided and by which rule of which revision of the key, and
 * the outcome of that effect. The counters that decide (calls of this minute, spend) live here, so that a replay with
 * another key tells what would have been refused.
 */
export const virtualKey = setup({
  types: {
    context: {} as KeyContext,
    events: {} as KeyEvent,
  },
  actions: {
    'gateway.forward': effect<ForwardParams>(),
    'gateway.answer': effect<AnswerParams>(),
    'gateway.confine': effect<ConfineParams>(),
    'gateway.want_slice': effect<WantParams>(),
    'http.reply': effect<KeyReply>(),
    'alerts.raise': effect<Alert>(),
    grant: assign(({ context, event }) => {
      if (event.type !== 'KEY_CREATED') return {};
      const { at, terms, presented } = event;
      return {
        revision: context.revision + 1,
        createdAt: at,
        changedAt: at,
        terms,
        presents: { [presented]: {} },
      };
    }),
    change: assign(({ context, event }) => {
      if (event.type !== 'KEY_UPDATED') return {};
      const { at, set, clear = [] } = event;
      if (!context.terms) return {};
      const terms = { ...context.terms, ...set };
      for (const name of clear) delete terms[name];
      return {
        revision: context.revision + 1,
        changedAt: at,
        terms,
      };
    }),
    rotate: assign(({ context, event }) => {
      if (event.type !== 'KEY_ROTATED') return {};
      const { at, presented, overlapMs } = event;
      // Old values stay known, so that calls with one are refused as such, and one that leaks is found.
      const ends = at + (overlapMs ?? 0);
      const endsAt = Number.isFinite(ends) ? ends : 0; // an imported log may hold anything
      const old = Object.entries(context.presents).map(([name, { until, hasEnded }]) => {
        const isOver = hasEnded || overlapMs === undefined;
        return [
          name,
          { until: Math.min(until ?? endsAt, endsAt), ...(isOver && { hasEnded: true }) },
        ] as const;
      });
      return {
        revision: context.revision + 1,
        changedAt: at,
        presents: { ...Object.fromEntries(old), [presented]: {} },
      };
    }),
    revoke: assign(({ context, event }) => {
      if (event.type !== 'KEY_REVOKED') return {};
      return { revision: context.revision + 1, changedAt: event.at, revokedAt: event.at };
    }),
    count: assign(({ context, event }) => afterCall(context, calling(event))),
    countRefusal: assign(({ context, event }) => afterRefusal(context, calling(event))),
    warned: assign(({ event }) => ({ warnedAt: calling(event).at })),
    note: assign(({ context, event }) =>
      orderOf(event) === undefined ? {} : { order: Math.max(context.order ?? 0, orderOf(event) ?? 0) },
    ),
    noteChange: assign(({ context, event }) => {
      const order = orderOf(event);
      if (order === undefined) return {};
      return {
        order: Math.max(context.order ?? 0, order),
        changed: Math.max(context.changed ?? 0, order),
      };
    }),
    hear: assign(({ context, event }) => (event.type === 'KEY_HEARD' ? heardOf(context, event) : {})),
    grantSlices: assign(({ context, event }) =>
      event.type === 'SLICE_WANTED' ? granted(context, event) : {},
    ),
    followClock: assign(({ context, event }) =>
      event.type === 'CLOCK_SET' ? afterClockSet(context, event.byMs) : {},
    ),
    refund: assign(({ context, event }) => (event.type === 'CALL_ENDED' ? afterEnd(context, event) : {})),
  },
  guards: {
    admitted: (args) => {
      const decided = judged(args);
      return decided.isAdmitted && !toWarn(args) && !asksFor(decided);
    },
    admittedWanting: (args) =>
      calling(args.event).cluster !== undefined && verdictOf(args).rule === 'admitted' && !toWarn(args),
    wants: (args) => asksFor(judged(args)),
    /** Messages to every host may come again. */
    isKnown: ({ context, event }) => (orderOf(event) ?? Number.POSITIVE_INFINITY) <= (context.order ?? 0),
    isNews: ({ context, event }) => event.type === 'KEY_HEARD' && isNews(context, event.context),
    /** Another host knows that it was revoked. */
    isRevokedElsewhere: ({ event }) =>
      event.type === 'KEY_HEARD' &&
      event.context.terms !== undefined &&
      event.context.revokedAt !== undefined,
    admittedMisplaced: (args) => verdictOf(args).rule === 'admitted',
    misplaced: toWarn,
    hasTimes: ({ context: { window, warnedAt, spendSince } }) =>
      window.at > 0 || warnedAt !== undefined || spendSince !== undefined,
  },
}).createMachine({
  id: 'gateway-key',
  context: { revision: 0, presents: {}, window: { at: 0, calls: 0 }, spend: 0, calls: 0, refused: 0 },
  initial: 'absent',
  states: {
    absent: {
      on: {
        KEY_CREATED: [known, { target: 'active', actions: ['grant', 'noteChange', reply(200)] }],
        KEY_HEARD: [
          { guard: 'isRevokedElsewhere', target: 'revoked', actions: ['hear', confine()] },
          { guard: 'isNews', target: 'active', actions: ['hear', confine()] },
        ],
      },
    },
    active: {
      on: {
        KEY_UPDATED: [known, { actions: ['change', 'noteChange', confine(), reply(200)] }],
        KEY_ROTATED: [known, { actions: ['rotate', 'noteChange', confine(), reply(200)] }],
        // However old the message is: a revocation is final.
        KEY_REVOKED: { target: 'revoked', actions: ['revoke', 'noteChange', confine(), reply(200)] },
        KEY_HEARD: [
          { guard: 'isRevokedElsewhere', target: 'revoked', actions: ['hear', confine()] },
          { guard: 'isNews', actions: ['hear', confine()] },
        ],
        KEY_READ: { actions: [replyToReading()] },
        SLICE_WANTED: [known, { actions: ['grantSlices', 'note'] }],
        CALL: [
          { guard: 'admitted', actions: [forward(), 'count'] },
          { guard: 'admittedWanting', actions: [forward(), want(), 'count'] },
          { guard: 'admittedMisplaced', actions: [forward(), 'count', warn(), 'warned'] },
          { guard: 'misplaced', actions: [refuse(), 'countRefusal', warn(), 'warned'] },
          { guard: 'wants', actions: [refuse(), want(), 'countRefusal'] },
          { actions: [refuse(), 'countRefusal'] },
        ],
      },
    },
    // Not a final state: calls with a revoked key are recorded, too.
    revoked: { on: { KEY_HEARD: { guard: 'isNews', actions: 'hear' } } },
  },
  on: {
    // When two changes are made at the same time, the second may no longer be possible.
    KEY_CREATED: [known, { actions: ['note', reply(409)] }],
    KEY_UPDATED: [known, { actions: ['note', reply(409)] }],
    KEY_ROTATED: [known, { actions: ['note', reply(409)] }],
    KEY_REVOKED: [known, { actions: ['note', reply(409)] }],
    KEY_READ: { actions: [replyToReading()] },
    CALL: { actions: [refuse(), 'countRefusal'] },
    CALL_ENDED: { actions: 'refund' },
    CLOCK_SET: { guard: 'hasTimes', actions: 'followClock' },
  },
});
