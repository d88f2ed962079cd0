import { assign, setup } from 'xstate';
import { type Alert, effect } from '../effect.ts';

/** The result of a probe of a route's upstream. */
export interface Probed {
  readonly type: 'PROBED';
  readonly at: number;
  /**
   * - `ok`: it lists tools, or serves its protected-resource document.
   * - `undocumented`: it answers, but serves no such document.
   * - `empty`: it answers, but lists no tool.
   * - `refused`: it rejects the gateway's credential.
   * - `failed`: it can't be reached, or does not speak the protocol.
   */
  readonly found: 'ok' | 'undocumented' | 'empty' | 'refused' | 'failed';
  /** The predicate of a sentence about the upstream, without the query of a URL. */
  readonly reason?: string;
  readonly tools?: number;
}

/** A client's call failed at the upstream; it counts like a probe that failed. */
export interface CallFailed {
  readonly type: 'CALL_FAILED';
  readonly at: number;
  /** As that of a probe. */
  readonly reason: string;
}

/** The token of the route can't be used as it is stored. */
export interface TokenUnusable {
  readonly type: 'TOKEN_UNUSABLE';
  readonly at: number;
  /** Why, with the place where it is stored. */
  readonly problem: string;
  /** The last good token goes on: for as long as the process lives, or until `endsAt`. */
  readonly lastGood: boolean;
  /** It is an authorization server that issues none. */
  readonly issued?: true;
  /** When the last token that it issued ends, epoch milliseconds. */
  readonly endsAt?: number;
}

export interface RouteHealthContext {
  readonly route: string;
  /** Result of the newest probe. */
  readonly found?: Probed['found'] | undefined;
  /** Consecutive probes and calls that failed. */
  readonly failures: number;
  readonly reason?: string | undefined;
  readonly tools?: number | undefined;
  /** When this result was first found, and when it was last recorded; epoch milliseconds. */
  readonly since?: number | undefined;
  readonly checkedAt?: number | undefined;
  /** The alert of the outage was raised. */
  readonly alerted?: true | undefined;
  /** Why the token can't be used. */
  readonly token?: Omit<TokenUnusable, 'type' | 'at'> | undefined;
}

export type RouteHealthEvent =
  | Probed
  | CallFailed
  /** A call was answered after one that failed: the failures were not in a row. */
  | { readonly type: 'CALL_ANSWERED'; readonly at: number }
  | TokenUnusable
  | { readonly type: 'TOKEN_USABLE'; readonly at: number }
  /** The route was redefined, or can't be probed any more: earlier results say nothing about it. */
  | { readonly type: 'RESET'; readonly at: number; readonly reason: string };

interface Args {
  readonly context: RouteHealthContext;
  readonly event: RouteHealthEvent;
}

/** Consecutive failures that raise an alert, and from which on the aggregate leaves the route out. */
export const ALERT_AFTER = 3;

const tokenOf = ({ type: _, at: __, ...token }: TokenUnusable): RouteHealthContext['token'] => token;

/** What a probe found, or a call that failed. */
function resultOf(event: RouteHealthEvent): Omit<Probed, 'type'> | undefined {
  switch (event.type) {
    case 'PROBED':
      return event;
    case 'CALL_FAILED':
      return { at: event.at, found: 'failed', reason: event.reason };
    case 'CALL_ANSWERED':
    case 'TOKEN_UNUSABLE':
    case 'TOKEN_USABLE':
    case 'RESET':
      return undefined;
  }
}

const found =
  (...kinds: readonly Probed['found'][]) =>
  ({ event }: Args): boolean =>
    kinds.some((kind) => resultOf(event)?.found === kind);
/** Whether this failure is the one that raises the alert. */
const isOutage = ({ context }: Args): boolean => context.failures + 1 >= ALERT_AFTER;

const isAlerted = ({ context }: Args): boolean => context.alerted === true;
const isKnownProblem = ({ context, event }: Args): boolean =>
  event.type === 'TOKEN_UNUSABLE' &&
  context.token?.problem === event.problem &&
  context.token.lastGood === event.lastGood;

/**
 * The health of one route (G17). `healthy`: its upstream lists tools. `degraded`: it lists none, or failed fewer than
 * three times in a row. `down`: it failed three times or more, in probes or calls; one good probe ends that. `undocumented`:
 * it answers, but serves no protected-resource document, so that logins fail while calls would succeed. `token_unusable`:
 * the gateway's token for it can't be used as it is stored; what probes find is kept for when it can.
 */
export const routeHealth = setup({
  types: {
    context: {} as RouteHealthContext,
    events: {} as RouteHealthEvent,
    input: {} as { readonly route: string } | undefined,
  },
  actions: {
    'alerts.raise': effect<Alert>(),
    saveResult: assign(({ context, event }) => {
      const result = resultOf(event);
      if (!result) return {};
      const { found, reason, tools, at } = result;
      return { found, reason, tools, checkedAt: at, since: context.found === found ? context.since : at };
    }),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    clearFailures: assign({ failures: 0, alerted: undefined }),
    clearResult: assign({ failures: 0, found: undefined, reason: undefined }),
    markAlerted: assign({ alerted: true as const }),
    saveToken: assign(({ event }) => (event.type === 'TOKEN_UNUSABLE' ? { token: tokenOf(event) } : {})),
    clearToken: assign({ token: undefined }),
    forget: assign(({ event }) => ({
      failures: 0,
      found: undefined,
      reason: event.type === 'RESET' ? event.reason : undefined,
      tools: undefined,
      alerted: undefined,
      token: undefined,
      since: event.at,
      checkedAt: undefined,
    })),
  },
  guards: {
    ok: found('ok'),
    okAfterAlert: (args) => found('ok')(args) && isAlerted(args),
    undocumented: found('undocumented'),
    undocumentedAfterAlert: (args) => found('undocumented')(args) && isAlerted(args),
    empty: found('empty'),
    emptyTooLong: (args) => found('empty')(args) && isOutage(args) && !isAlerted(args),
    outage: isOutage,
    newOutage: (args) => isOutage(args) && !isAlerted(args),
    alerted: isAlerted,
    knownProblem: isKnownProblem,
    wasOk: ({ context }) => context.found === 'ok',
    wasUndocumented: ({ context }) => context.found === 'undocumented',
    wasDown: ({ context }) =>
      (context.found === 'failed' || context.found === 'refused') && context.failures >= ALERT_AFTER,
    wasDegraded: ({ context }) => context.found !== undefined,
  },
}).createMachine({
  id: 'gateway-route-health',
  context: ({ input }) => ({ route: input?.route ?? '', failures: 0 }),
  initial: 'unknown',
  states: {
    unknown: {},
    healthy: {},
    undocumented: {},
    degraded: {
      on: { CALL_ANSWERED: { target: 'unknown', actions: 'clearResult' } },
    },
    down: {},
    token_unusable: {
      on: {
        PROBED: [
          {
            guard: 'okAfterAlert',
            actions: [resolve(), 'saveResult', 'clearFailures'],
          },
          { guard: 'ok', actions: ['saveResult', 'clearFailures'] },
          { guard: 'newOutage', actions: ['saveResult', 'countFailure', warn(), 'markAlerted'] },
          { actions: ['saveResult', 'countFailure'] },
        ],
        CALL_FAILED: [
          { guard: 'newOutage', actions: ['saveResult', 'countFailure', warn(), 'markAlerted'] },
          { actions: ['saveResult', 'countFailure'] },
        ],
        CALL_ANSWERED: { actions: 'clearResult' },
        TOKEN_USABLE: [
          { guard: 'wasOk', target: 'healthy', actions: [resolveToken(), 'clearToken'] },
          { guard: 'wasUndocumented', target: 'undocumented', actions: [resolveToken(), 'clearToken'] },
          { guard: 'wasDown', target: 'down', actions: [resolveToken(), 'clearToken'] },
          { guard: 'wasDegraded', target: 'degraded', actions: [resolveToken(), 'clearToken'] },
          { target: 'unknown', actions: [resolveToken(), 'clearToken'] },
        ],
        RESET: [
          { guard: 'alerted', target: 'unknown', actions: [resolveToken(), resolve(), 'forget'] },
          { target: 'unknown', actions: [resolveToken(), 'forget'] },
        ],
      },
    },
  },
  on: {
    PROBED: [
      { guard: 'okAfterAlert', target: '.healthy', actions: [resolve(), 'saveResult', 'clearFailures'] },
      { guard: 'ok', target: '.healthy', actions: ['saveResult', 'clearFailures'] },
      {
        guard: 'undocumentedAfterAlert',
        target: '.undocumented',
        actions: [resolve(), 'saveResult', 'clearFailures'],
      },
      { guard: 'undocumented', target: '.undocumented', actions: ['saveResult', 'clearFailures'] },
      {
        guard: 'emptyTooLong',
        target: '.degraded',
        actions: ['saveResult', 'countFailure', warn(), 'markAlerted'],
      },
      { guard: 'empty', target: '.degraded', actions: ['saveResult', 'countFailure'] },
      { guard: 'newOutage', target: '.down', actions: ['saveResult', 'countFailure', warn(), 'markAlerted'] },
      { guard: 'outage', target: '.down', actions: ['saveResult', 'countFailure'] },
      { target: '.degraded', actions: ['saveResult', 'countFailure'] },
    ],
    CALL_FAILED: [
      { guard: 'newOutage', target: '.down', actions: ['saveResult', 'countFailure', warn(), 'markAlerted'] },
      { guard: 'outage', target: '.down', actions: ['saveResult', 'countFailure'] },
      { target: '.degraded', actions: ['saveResult', 'countFailure'] },
    ],
    TOKEN_UNUSABLE: [
      { guard: 'knownProblem' },
      { target: '.token_unusable', actions: ['saveToken', warnOfToken()] },
    ],
    RESET: [
      { guard: 'alerted', target: '.unknown', actions: [resolve(), 'forget'] },
      { target: '.unknown', actions: 'forget' },
    ],
  },
});

function warn() {
  return {
    type: 'alerts.raise',
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
    type: 'alerts.raise',
    params: ({ context, event }: Args): Alert => ({
      name: 'gateway.route_down',
      severity: 'info',
      text:
        event.type === 'RESET'
          ? `The route ${context.route} is probed again from the beginning: ${event.reason}.`
          : `The upstream of the route ${context.route} answers again.`,
      labels: { route: context.route, state: 'resolved' },
    }),
  } as const;
}

function warnOfToken() {
  return {
    type: 'alerts.raise',
    params: ({ context, event }: Args): Alert => {
      if (event.type === 'TOKEN_UNUSABLE' && event.issued) return warnOfIssued(context.route, event);
      const { problem, lastGood } =
        event.type === 'TOKEN_UNUSABLE' ? event : { problem: '', lastGood: false };
      const then = lastGood
        ? 'The last good token goes on until the process ends; after a restart the route answers 503.'
        : 'The route answers 503 until it is corrected.';
      return {
        name: 'gateway.route_token',
        severity: lastGood ? 'warning' : 'critical',
        text: `The token of the route ${context.route} can not be used: ${problem}. ${then}`,
        labels: { route: context.route, state: 'firing', last_good: String(lastGood) },
      };
    },
  } as const;
}

function warnOfIssued(route: string, { at, problem, lastGood, endsAt }: TokenUnusable): Alert {
  const then =
    lastGood && endsAt !== undefined
      ? `The last one goes on for ${Math.ceil((endsAt - at) / 60_000)} min at most; then the route answers 503.`
      : 'The route answers 503 until there is one; the gateway tries again by itself.';
  return {
    name: 'gateway.route_token',
    severity: lastGood ? 'warning' : 'critical',
    text: `No token is issued for the route ${route}: ${problem}. ${then}`,
    labels: { route, state: 'firing', last_good: String(lastGood) },
  };
}

function resolveToken() {
  return {
    type: 'alerts.raise',
    params: ({ context, event }: Args): Alert => ({
      name: 'gateway.route_token',
      severity: 'info',
      text:
        event.type === 'RESET'
          ? `The token of the route ${context.route} is read again from the beginning: ${event.reason}.`
          : `The token of the route ${context.route} can be used again.`,
      labels: { route: context.route, state: 'resolved' },
    }),
  } as const;
}
