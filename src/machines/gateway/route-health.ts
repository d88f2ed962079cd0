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

export interface RouteHealthContext {
  readonly route: string;
  /** Result of the newest probe. */
  readonly found?: Probed['found'] | undefined;
  /** Consecutive probes that failed. */
  readonly failures: number;
  readonly reason?: string | undefined;
  readonly tools?: number | undefined;
  /** When this result was first found, and when it was last recorded; epoch milliseconds. */
  readonly since?: number | undefined;
  readonly checkedAt?: number | undefined;
  /** The alert of the outage was raised. */
  readonly alerted?: true | undefined;
}

export type RouteHealthEvent =
  | Probed
  /** The route was redefined, or can't be probed any more: earlier results say nothing about it. */
  | { readonly type: 'RESET'; readonly at: number; readonly reason: string };

interface Args {
  readonly context: RouteHealthContext;
  readonly event: RouteHealthEvent;
}

/** Consecutive failures that raise an alert. */
export const ALERT_AFTER = 3;

const probed = (event: RouteHealthEvent): Probed | undefined => (event.type === 'PROBED' ? event : undefined);
const found =
  (...kinds: readonly Probed['found'][]) =>
  ({ event }: Args): boolean =>
    kinds.some((kind) => probed(event)?.found === kind);
/** Whether this failure is the one that raises the alert. */
const isOutage = ({ context }: Args): boolean => context.failures + 1 >= ALERT_AFTER;

const isAlerted = ({ context }: Args): boolean => context.alerted === true;

/**
 * The health of one route's upstream (G17). `healthy`: it lists tools. `degraded`: it lists none, or failed fewer than
 * three times in a row. `down`: it failed three times or more. `undocumented`: it answers, but serves no
 * protected-resource document, so that logins fail while calls would succeed.
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
      const result = probed(event);
      if (!result) return {};
      const { found, reason, tools, at } = result;
      return { found, reason, tools, checkedAt: at, since: context.found === found ? context.since : at };
    }),
    countFailure: assign({ failures: ({ context }) => context.failures + 1 }),
    clearFailures: assign({ failures: 0, alerted: undefined }),
    markAlerted: assign({ alerted: true as const }),
    forget: assign(({ event }) => ({
      failures: 0,
      found: undefined,
      reason: event.type === 'RESET' ? event.reason : undefined,
      tools: undefined,
      alerted: undefined,
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
  },
}).createMachine({
  id: 'gateway-route-health',
  context: ({ input }) => ({ route: input?.route ?? '', failures: 0 }),
  initial: 'unknown',
  states: { unknown: {}, healthy: {}, undocumented: {}, degraded: {}, down: {} },
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
