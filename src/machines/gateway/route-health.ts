import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** What a look at a route's upstream found. */
export interface Probed {
  readonly type: 'PROBED';
  readonly at: number;
  /**
   * - `ok`: it lists tools, or serves its protected-resource document.
   * - `undocumented`: it answers, but has no such document.
   * - `empty`: it lists no tool: connected is not healthy.
   * - `refused`: it does not take the gateway's credential.
   * - `failed`: it can't be reached, or does not speak the protocol.
   */
  readonly found: 'ok' | 'undocumented' | 'empty' | 'refused' | 'failed';
  /** In words, without a URL's query. */
  readonly reason?: string;
  readonly tools?: number;
}

export interface RouteHealthContext {
  readonly route: string;
  /** The newest finding. */
  readonly found?: Probed['found'] | undefined;
  /** Looks in a row that found something wrong. */
  readonly failures: number;
  readonly reason?: string | undefined;
  readonly tools?: number | undefined;
  /** When it was first found so, and when that was last recorded, epoch milliseconds. */
  readonly since?: number | undefined;
  readonly checkedAt?: number | undefined;
  /** A person was told of the outage. */
  readonly told?: true | undefined;
}

export type RouteHealthEvent =
  | Probed
  /** Its definition is another one, or it can't be asked: what was known says nothing any more. */
  | { readonly type: 'RESET'; readonly at: number; readonly reason: string };

interface Args {
  readonly context: RouteHealthContext;
  readonly event: RouteHealthEvent;
}

/** Looks in a row after which a person is told: one lost answer is no outage. */
export const ALERT_AFTER = 3;

const probed = (event: RouteHealthEvent): Probed | undefined => (event.type === 'PROBED' ? event : undefined);
const found =
  (...kinds: readonly Probed['found'][]) =>
  ({ event }: Args): boolean =>
    kinds.some((kind) => probed(event)?.found === kind);
/** The look that makes it enough. */
const isEnough = ({ context }: Args): boolean => context.failures + 1 >= ALERT_AFTER;

const isTold = ({ context }: Args): boolean => context.told === true;

/**
 * How the upstream of one route is (G17): healthy when it lists tools, degraded as long as a failure may be a passing one
 * or it lists none, down when it stays so. An upstream that answers without a protected-resource document is in a state
 * of its own, for logins fail there while calls would not.
 */
export const mcpRouteHealth = setup({
  types: {
    context: {} as RouteHealthContext,
    events: {} as RouteHealthEvent,
    input: {} as { readonly route: string } | undefined,
  },
  actions: {
    'alert.raise': effect<Alert>(),
    note: assign(({ context, event }) => {
      const look = probed(event);
      if (!look) return {};
      const { found, reason, tools, at } = look;
      return { found, reason, tools, checkedAt: at, since: context.found === found ? context.since : at };
    }),
    fail: assign({ failures: ({ context }) => context.failures + 1 }),
    recover: assign({ failures: 0, told: undefined }),
    tell: assign({ told: true as const }),
    forget: assign(({ event }) => ({
      failures: 0,
      found: undefined,
      reason: event.type === 'RESET' ? event.reason : undefined,
      tools: undefined,
      told: undefined,
      since: event.at,
      checkedAt: undefined,
    })),
  },
  guards: {
    ok: found('ok'),
    okAgain: (args) => found('ok')(args) && isTold(args),
    undocumented: found('undocumented'),
    undocumentedAgain: (args) => found('undocumented')(args) && isTold(args),
    empty: found('empty'),
    emptyTooLong: (args) => found('empty')(args) && isEnough(args) && !isTold(args),
    outage: isEnough,
    newOutage: (args) => isEnough(args) && !isTold(args),
    told: isTold,
  },
}).createMachine({
  id: 'gateway-route-health',
  context: ({ input }) => ({ route: input?.route ?? '', failures: 0 }),
  initial: 'unknown',
  states: { unknown: {}, healthy: {}, undocumented: {}, degraded: {}, down: {} },
  on: {
    PROBED: [
      { guard: 'okAgain', target: '.healthy', actions: [resolve(), 'note', 'recover'] },
      { guard: 'ok', target: '.healthy', actions: ['note', 'recover'] },
      { guard: 'undocumentedAgain', target: '.undocumented', actions: [resolve(), 'note', 'recover'] },
      { guard: 'undocumented', target: '.undocumented', actions: ['note', 'recover'] },
      { guard: 'emptyTooLong', target: '.degraded', actions: ['note', 'fail', warn(), 'tell'] },
      { guard: 'empty', target: '.degraded', actions: ['note', 'fail'] },
      { guard: 'newOutage', target: '.down', actions: ['note', 'fail', warn(), 'tell'] },
      { guard: 'outage', target: '.down', actions: ['note', 'fail'] },
      { target: '.degraded', actions: ['note', 'fail'] },
    ],
    RESET: [
      { guard: 'told', target: '.unknown', actions: [resolve(), 'forget'] },
      { target: '.unknown', actions: 'forget' },
    ],
  },
});

function warn() {
  return {
    type: 'alert.raise',
    params: ({ context }: Args): Alert => ({
      name: 'gateway.route_down',
      severity: 'critical',
      text: `The route ${context.route} is down: its upstream ${context.reason ?? 'fails'}.`,
      labels: { route: context.route, state: 'firing', found: context.found ?? '' },
    }),
  } as const;
}

function resolve() {
  return {
    type: 'alert.raise',
    params: ({ context, event }: Args): Alert => ({
      name: 'gateway.route_down',
      severity: 'info',
      text:
        event.type === 'RESET'
          ? `The route ${context.route} is looked at anew: ${event.reason}.`
          : `The upstream of the route ${context.route} answers again.`,
      labels: { route: context.route, state: 'resolved' },
    }),
  } as const;
}
