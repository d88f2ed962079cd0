import { assign, setup } from 'xstate';
import { moved } from '../clock-set.ts';
import { type Alert, effect } from '../effect.ts';
import { counted } from './allowance.ts';
import { heardOf, isNews } from './key-heard.ts';
import type {
  AnswerParams,
  Attribution,
  CallRequest,
  ConfineParams,
  ForwardParams,
  KeyContext,
  KeyEvent,
  KeyReply,
  MisplacedKey,
  WantParams,
} from './key-rules.ts';
import {
  add,
  goodUntil,
  judge,
  judgeReading,
  limitedNames,
  NO_CALLS,
  spentAt,
  usesAfter,
  usesOf,
  windowAt,
} from './key-rules.ts';
import { BUDGET, granted, type Shared, type SliceWanted, sharedMoved } from './shares.ts';

export type * from './key-rules.ts';

interface Args {
  readonly context: KeyContext;
  readonly event: KeyEvent;
}

const calling = (event: KeyEvent): CallRequest => {
  if (event.type !== 'CALL') throw new TypeError(`${event.type} is no call`);
  return event;
};
const verdictOf = ({ context, event }: Args) => judge(context, calling(event));
/** Whose call it is, in the record of its decision. */
const attribution = ({ terms }: KeyContext): Attribution => ({
  ...(terms && { alias: terms.alias }),
  ...(terms?.owner !== undefined && { owner: terms.owner }),
});
/** A key or the master key where it does not belong: somebody should rotate it (G9, G25). */
const misplacedIn = (event: KeyEvent): MisplacedKey | undefined => {
  const { authorization, misplaced } = calling(event);
  const known = authorization === 'virtual_key' || authorization === 'master_key';
  return known ? { key: authorization, where: 'header authorization' } : misplaced;
};
/** The windows of single servers and tools after another call. */
function counting(
  { windows, terms }: KeyContext,
  names: readonly string[],
  at: number,
): NonNullable<KeyContext['windows']> {
  // What has no limit any more is not counted any more.
  const kept = Object.entries(windows ?? {}).filter(([name]) => Object.hasOwn(terms?.rpmLimits ?? {}, name));
  const counted = names.map((name) => {
    const { window } = windowAt({ window: windows?.[name] ?? NO_CALLS }, at);
    return [name, { at: window.at, calls: window.calls + 1 }] as const;
  });
  return Object.fromEntries([...kept, ...counted]);
}

/** The verdict on a call, and what it uses of shared limits then. The limits are looked at once for both: every call pays for it. */
function judged({ context, event }: Args) {
  const call = calling(event);
  const uses = usesOf(context, call);
  const isAdmitted = judge(context, call, uses).rule === 'admitted';
  return { isAdmitted, uses: usesAfter(uses, call, isAdmitted) };
}

const asksFor = ({ uses }: ReturnType<typeof judged>): boolean => uses.some(({ asks }) => asks);

/** What this host asks the others for at a call; none without a cluster. */
function wantsOf(args: Args): readonly SliceWanted[] {
  const { context } = args;
  const call = calling(args.event);
  return judged(args).uses.flatMap(({ allowance, amount, asks }) => {
    const { name, used, began } = allowance;
    if (!asks) return [];
    const isNew = name === BUDGET && context.shared?.shares[name] === undefined;
    return [
      {
        name,
        used: add(used, amount),
        need: name === BUDGET ? (call.cost ?? 0) : 1,
        ...(began !== undefined && { began }),
        ...(isNew && { base: add(spentAt(context, call.at).spend, -used) }),
      },
    ];
  });
}

/** What is shared after a call. */
function sharedAfter(
  context: KeyContext,
  call: CallRequest,
  isAdmitted: boolean,
): Pick<KeyContext, 'shared'> {
  const uses = usesAfter(usesOf(context, call), call, isAdmitted);
  return call.cluster && uses.length > 0 ? { shared: counted(context, call.cluster, uses, call.at) } : {};
}

/** A client that does it with every call must not become a flood of alerts. */
const WARN_EVERY_MS = 60_000;
const toWarn = ({ context, event }: Args): boolean => {
  if (misplacedIn(event) === undefined) return false;
  const passed = calling(event).at - (context.warnedAt ?? Number.NEGATIVE_INFINITY);
  return passed >= WARN_EVERY_MS || passed < 0; // below zero the clock was set back
};

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
    count: assign(({ context, event }) => {
      const call = calling(event);
      const counted = call.method === 'tools/call';
      const { window } = windowAt(context, call.at);
      const { spend, since } = spentAt(context, call.at);
      const limited = counted ? limitedNames(context, call) : [];
      return {
        lastSeenAt: call.at,
        calls: context.calls + 1,
        ...(counted && { window: { at: window.at, calls: window.calls + 1 } }),
        ...(counted && call.cost && { spend: add(spend, call.cost) }),
        ...(counted && call.cost && context.terms?.budgetMs !== undefined && { spendSince: since }),
        ...(limited.length > 0 && { windows: counting(context, limited, call.at) }),
        ...sharedAfter(context, call, true),
      };
    }),
    countRefusal: assign(({ context, event }) => {
      const call = calling(event);
      const { at, count = 1 } = call;
      return {
        lastSeenAt: at,
        refused: context.refused + count,
        ...sharedAfter(context, call, false),
        // After a clock was set back, its minute would otherwise begin again at every refusal and never end.
        ...(at < context.window.at && { window: windowAt(context, at).window }),
      };
    }),
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
    /** The limit of a minute is a duration; the expiry of a key and the end of an overlap are dates, and stay. */
    followClock: assign(({ context, event }) =>
      event.type === 'CLOCK_SET'
        ? {
            ...moved(context, event.byMs, 'warnedAt'),
            window: { ...context.window, ...moved(context.window, event.byMs, 'at') },
            ...moved(context, event.byMs, 'spendSince'),
            ...(context.shared && { shared: sharedMoved(context.shared, event.byMs) }),
            ...(context.windows && {
              windows: Object.fromEntries(
                Object.entries(context.windows).map(([name, window]) => [
                  name,
                  { ...window, ...moved(window, event.byMs, 'at') },
                ]),
              ),
            }),
          }
        : {},
    ),
    // A call that never reached its upstream costs nothing.
    refund: assign(({ context, event }) => {
      if (event.type !== 'CALL_ENDED' || !event.cost) return {};
      const reached = !['unreachable', 'gone', 'answered'].includes(event.outcome);
      if (reached) return {};
      const { shared } = context;
      return {
        spend: add(context.spend, -event.cost),
        ...(shared?.own[BUDGET] && { shared: refunded(shared, event.cost) }),
      };
    }),
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

function want() {
  return {
    type: 'gateway.want_slice',
    params: (args: Args): WantParams => {
      const { host = '', hosts = 1 } = calling(args.event).cluster ?? {};
      return { host, hosts, wants: wantsOf(args) };
    },
  } as const;
}

/** Gives back what a call cost that never reached its upstream. */
function refunded(shared: Shared, cost: number): Shared {
  const own = shared.own[BUDGET];
  return own
    ? { ...shared, own: { ...shared.own, [BUDGET]: { ...own, used: add(own.used, -cost) } } }
    : shared;
}

function reply(status: number) {
  return {
    type: 'http.reply',
    params: ({ context }: Args): KeyReply => ({ status, body: { revision: context.revision } }),
  } as const;
}

function replyToReading() {
  return {
    type: 'http.reply',
    params: ({ context, event }: Args): KeyReply => {
      if (event.type !== 'KEY_READ') throw new TypeError(`${event.type} reads no key`);
      const verdict = judgeReading(context, event.presented, event.at);
      const overLimit = verdict.rule === 'rate_limited' || verdict.rule === 'over_budget';
      const status = verdict.rule === 'admitted' ? 200 : overLimit ? 429 : 401;
      return { status, body: { revision: context.revision, ...verdict } };
    },
  } as const;
}

/** When open calls with an earlier value end: what ends at once does so whatever the clock of a host says. */
const endOfOverlap = ({ at, overlapMs }: KeyEvent & { type: 'KEY_ROTATED' }): number =>
  overlapMs === undefined ? 0 : at + overlapMs;

/** Actions are resolved in order, so this one sees the key as it is after the change. */
function confine() {
  return {
    type: 'gateway.confine',
    params: ({ context, event }: Args): ConfineParams => {
      const { terms, revokedAt } = context;
      const ends = event.type === 'KEY_ROTATED' ? endOfOverlap(event) : terms?.expiresAt;
      return {
        servers: revokedAt === undefined && !terms?.blocked ? (terms?.servers ?? []) : [],
        ...(ends !== undefined && { until: ends }),
      };
    },
  } as const;
}

function forward() {
  return {
    type: 'gateway.forward',
    params: ({ context, event }: Args): ForwardParams => {
      const { routes, cost, method, presented } = calling(event);
      const { terms, revision } = context;
      const allowed = routes.filter((route) => terms?.servers.includes(route));
      const until = goodUntil(context, presented);
      return {
        routes: allowed,
        revision,
        ...attribution(context),
        ...(until !== undefined && { until }),
        ...(terms?.tools && { tools: terms.tools }),
        ...(cost !== undefined && method === 'tools/call' && { cost }),
      };
    },
  } as const;
}

function refuse() {
  return {
    type: 'gateway.answer',
    params: (args: Args): AnswerParams => {
      const { rule, retryAfterMs } = verdictOf(args);
      return {
        rule,
        revision: args.context.revision,
        ...attribution(args.context),
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      };
    },
  } as const;
}

function warn() {
  return {
    type: 'alerts.raise',
    params: ({ context, event }: Args): Alert => {
      const { routes } = calling(event);
      const { key, where } = misplacedIn(event) ?? { key: 'virtual_key', where: '' };
      const what = key === 'master_key' ? 'The master key' : 'A virtual key';
      return {
        name: 'gateway.key_misplaced',
        severity: 'critical',
        text: `${what} came where it does not belong (${where}) and may have been read. It was not forwarded; rotate it.`,
        labels: { alias: context.terms?.alias ?? 'unknown', routes: routes.join(','), where },
      };
    },
  } as const;
}
