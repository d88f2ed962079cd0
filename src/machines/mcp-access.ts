import { assign, setup } from 'xstate';
import { type Alert, effect } from './effect.ts';
import type {
  AccessCall,
  AccessContext,
  AccessEvent,
  AnswerParams,
  ForwardParams,
} from './mcp-access/shapes.ts';
import { judge, windowAt } from './mcp-access/verdict.ts';

export type * from './mcp-access/shapes.ts';

interface Args {
  readonly context: AccessContext;
  readonly event: AccessEvent;
}

const calling = (event: AccessEvent): AccessCall => {
  if (event.type !== 'CALL') throw new TypeError(`${event.type} is no call`);
  return event;
};
const verdictOf = ({ context, event }: Args) => judge(context, calling(event));
/** A key or the master key where only an identity token belongs: somebody should rotate it (G9, G25). */
const misplaced = ({ event }: Args): boolean => {
  const { authorization } = calling(event);
  return authorization === 'virtual_key' || authorization === 'master_key';
};

/**
 * One virtual key of the gateway: what it may reach, and every call it made (G3, G5, G6, G9, G16, G19).
 *
 * A call is two records: CALL, whose effect says what was decided and by which rule of which revision of the key, and
 * the outcome of that effect. The counters that decide (calls of this minute, spend) live here, so that a replay with
 * another key tells what would have been refused.
 */
export const mcpAccess = setup({
  types: {
    context: {} as AccessContext,
    events: {} as AccessEvent,
  },
  actions: {
    'gateway.forward': effect<ForwardParams>(),
    'gateway.answer': effect<AnswerParams>(),
    'http.reply': effect<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }>(),
    'alert.raise': effect<Alert>(),
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
      return { revision: context.revision + 1, changedAt: event.at, terms: event.terms };
    }),
    rotate: assign(({ context, event }) => {
      if (event.type !== 'KEY_ROTATED') return {};
      const { at, presented, overlapMs } = event;
      const old = Object.entries(context.presents).flatMap(([name, { until }]) => {
        const ends = Math.min(until ?? Number.POSITIVE_INFINITY, at + overlapMs);
        return ends > at ? [[name, { until: ends }] as const] : [];
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
      return {
        lastSeenAt: call.at,
        calls: context.calls + 1,
        ...(counted && { window: { at: window.at, calls: window.calls + 1 } }),
        ...(counted && call.cost && { spend: context.spend + call.cost }),
      };
    }),
    countRefusal: assign(({ context, event }) => ({
      lastSeenAt: calling(event).at,
      refused: context.refused + 1,
    })),
    // What never reached its upstream has cost nothing.
    refund: assign(({ context, event }) => {
      if (event.type !== 'CALL_ENDED' || event.outcome !== 'unreachable' || !event.cost) return {};
      return { spend: Math.max(0, context.spend - event.cost) };
    }),
  },
  guards: {
    admitted: (args) => verdictOf(args).rule === 'admitted' && !misplaced(args),
    admittedMisplaced: (args) => verdictOf(args).rule === 'admitted',
    misplaced,
  },
}).createMachine({
  id: 'mcp-access',
  context: { revision: 0, presents: {}, window: { at: 0, calls: 0 }, spend: 0, calls: 0, refused: 0 },
  initial: 'absent',
  states: {
    absent: { on: { KEY_CREATED: { target: 'active', actions: ['grant', reply(201)] } } },
    active: {
      on: {
        KEY_UPDATED: { actions: ['change', reply(200)] },
        KEY_ROTATED: { actions: ['rotate', reply(200)] },
        KEY_REVOKED: { target: 'revoked', actions: ['revoke', reply(200)] },
        CALL: [
          { guard: 'admitted', actions: [forward(), 'count'] },
          { guard: 'admittedMisplaced', actions: [forward(), 'count', warn()] },
          { guard: 'misplaced', actions: [refuse(), 'countRefusal', warn()] },
          { actions: [refuse(), 'countRefusal'] },
        ],
      },
    },
    // Not final: who still calls with it belongs in the log.
    revoked: {},
  },
  on: {
    CALL: { actions: [refuse(), 'countRefusal'] },
    CALL_ENDED: { actions: 'refund' },
  },
});

/** Parameters of a key change's answer; the surface adds what no record may hold. */
function reply(status: number) {
  return { type: 'http.reply', params: () => ({ status, body: {} }) } as const;
}

function forward() {
  return {
    type: 'gateway.forward',
    params: ({ context, event }: Args): ForwardParams => {
      const { routes, cost, method } = calling(event);
      const { terms, revision } = context;
      const allowed = routes.filter((route) => terms?.servers.includes(route));
      return {
        routes: allowed,
        revision,
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
      return { rule, revision: args.context.revision, ...(retryAfterMs !== undefined && { retryAfterMs }) };
    },
  } as const;
}

function warn() {
  return {
    type: 'alert.raise',
    params: ({ context, event }: Args): Alert => {
      const { routes, authorization } = calling(event);
      const what = authorization === 'master_key' ? 'The master key' : 'A virtual key';
      return {
        name: 'gateway.key_misplaced',
        severity: 'critical',
        text: `${what} came in the Authorization header, where an upstream could have read it. It was not forwarded; rotate it.`,
        labels: { alias: context.terms?.alias ?? 'unknown', routes: routes.join(',') },
      };
    },
  } as const;
}
