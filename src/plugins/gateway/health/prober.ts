import type { Services } from '../../../core/host/plugin/definition.ts';
import { isoTime } from '../../../core/kernel/clock.ts';
import type { CallEnded } from '../../../machines/gateway/call-shapes.ts';
import { ALERT_AFTER, type RouteHealthContext } from '../../../machines/gateway/route-health.ts';
import type { TokenProblem } from '../issued/route-token.ts';
import type { RouteHealth } from '../routes/operations.ts';
import type { Route, RouteTable } from '../routes/route.ts';
import { routeCalled, routeHealthActor, routeProbed, routeReset, routeTokenRead } from './actor.ts';
import type { ProbeResult } from './probe.ts';

export interface ProberOptions {
  readonly services: Pick<Services, 'actors' | 'bus' | 'clock' | 'logger'>;
  /** Time between two probes of one route, milliseconds; it varies by a tenth. With 0 nothing is probed. */
  readonly everyMs: number;
  readonly probe: (route: Route, stop: AbortSignal) => Promise<ProbeResult>;
  /** @returns whether its server is loaded with the first call, and nobody has called yet: a probe must not load it */
  readonly isUnloaded: (route: Route) => boolean;
  /** @returns a number from 0 up to 1 */
  readonly random: () => number;
}

/** The first probes come within this time, spread over it. */
const FIRST_MS = 3_000;
const MOST_AT_ONCE = 8;
type CallFailure = 'timed_out' | 'unreachable';
/** Outcomes of calls that the upstream answered. */
const ANSWERED: ReadonlySet<string> = new Set(['ok', 'tool_error', 'rpc_error', 'http_error']);
/** Age of the last result of a route that is down, from which on whoever wants it has it probed at once. */
const HALF_OPEN_MS = 5_000;
/** Why nothing is known of a server that is loaded with the first call. */
const NOT_CALLED = 'not called yet: its server is loaded with the first call';
/** How long a probe waits when too many run. */
const WAIT_MS = 1_000;

/**
 * Probes the upstream of every route from time to time. New results go to the route's actor, which decides what they
 * mean; an unchanged result is not recorded.
 */
export class Prober {
  readonly #options: ProberOptions;
  readonly #cancels = new Map<string, () => void>();
  readonly #checkedAt = new Map<string, number>();
  readonly #probing = new Set<string>();
  /** How the last call of a route failed; routes whose last call was answered are not here. */
  readonly #failing = new Map<string, CallFailure>();
  /** Routes that were not probed because nobody has called them. */
  readonly #uncalled = new Set<string>();
  readonly #stop = new AbortController();
  #routes: ReadonlyMap<string, Route> = new Map();

  constructor(options: ProberOptions) {
    this.#options = options;
  }

  /** Follows a table: new and changed routes are probed soon, removed ones no more. */
  follow({ routes }: RouteTable): void {
    const before = this.#routes;
    this.#routes = routes;
    for (const name of new Set([...before.keys(), ...routes.keys(), ...this.#recordedRoutes()])) {
      const route = routes.get(name);
      if (route !== undefined && before.get(name) === route) continue;
      this.#cancels.get(name)?.();
      this.#cancels.delete(name);
      if (route === undefined) this.#reset(name, 'the route was removed');
      else {
        if (before.has(name)) this.#reset(name, 'its definition changed');
        route.token?.onChange(() => this.#publishToken(name, route));
        this.#publishToken(name, route);
        this.#schedule(name, this.#options.random() * Math.min(FIRST_MS, this.#options.everyMs));
      }
    }
  }

  /** @returns the health of a route as its actor knows it */
  health(name: string): RouteHealth | undefined {
    const route = this.#routes.get(name);
    if (route && this.#options.isUnloaded(route)) return { state: 'unknown', reason: NOT_CALLED };
    const state = this.#options.services.actors.get(routeHealthActor, name);
    if (!state) return undefined;
    const { reason: found, tools, checkedAt, token } = state.context;
    const at = this.#checkedAt.get(name) ?? checkedAt;
    const isUnusable = state.value === 'token_unusable';
    const reason = isUnusable ? tokenText(token) : found;
    return {
      state: state.value,
      ...(isUnusable && token?.issued && { token: 'issued' as const }),
      ...(reason !== undefined && { reason }),
      ...(tools !== undefined && { tools }),
      ...(at !== undefined && { checkedAt: new Date(at).toISOString() }),
    };
  }

  /**
   * Why a route is left out where others answer as well: its upstream is down. Whoever asks has it probed, one probe at a
   * time and at most one in five seconds, so that it is soon back.
   *
   * @returns undefined for a route that may be asked
   */
  whyDown(name: string): string | undefined {
    const state = this.#options.services.actors.get(routeHealthActor, name);
    if (state?.value !== 'down') return undefined;
    const { reason = 'fails' } = state.context;
    const route = this.#routes.get(name);
    // What is probed of a relay route is its document: only an upstream that is away is away for calls too.
    if (route?.needsIdentity && !AWAY.has(reason)) return undefined;
    const { services } = this.#options;
    const age = services.clock.now() - (this.#checkedAt.get(name) ?? 0);
    if (age >= HALF_OPEN_MS || age < 0) this.#probeNow(name);
    return reason;
  }

  /**
   * Hears what became of a call. Failures go to the route's actor until it is down, and the first answer after one.
   *
   * @param method of the JSON-RPC message
   */
  callEnded(name: string, outcome: CallEnded['outcome'], method: string | undefined): void {
    if (this.#uncalled.delete(name)) this.#probeNow(name);
    const isToolCall = method === 'tools/call';
    if (outcome === 'timed_out' || outcome === 'unreachable') {
      // A tool may be slow by itself.
      if (!(isToolCall && outcome === 'timed_out')) this.#callFailed(name, outcome);
      return;
    }
    if (this.#failing.size === 0 || !ANSWERED.has(outcome)) return;
    const failure = this.#failing.get(name);
    if (failure === undefined || (isToolCall && failure === 'timed_out')) return;
    this.#failing.delete(name);
    const { actors, bus, clock } = this.#options.services;
    const state = actors.get(routeHealthActor, name);
    // What is down is ended by a probe, which calls more than one thing.
    if (state === undefined || state.value === 'down' || state.context.failures === 0) return;
    bus.publish(routeCalled, { type: 'CALL_ANSWERED', route: name, at: clock.now() });
  }

  #callFailed(name: string, outcome: CallFailure): void {
    const { actors, bus, clock } = this.#options.services;
    this.#failing.set(name, outcome);
    if (actors.get(routeHealthActor, name)?.value === 'down') return;
    const reason = outcome === 'timed_out' ? 'does not answer in time' : 'cannot be reached';
    bus.publish(routeCalled, { type: 'CALL_FAILED', route: name, at: clock.now(), reason });
  }

  stop(): void {
    this.#stop.abort();
    for (const cancel of this.#cancels.values()) cancel();
  }

  #schedule(name: string, delayMs: number): void {
    const { everyMs, services } = this.#options;
    if (everyMs === 0 || this.#stop.signal.aborted) return;
    const cancel = services.clock.after(delayMs, () => {
      const isBusy = this.#probing.has(name) || this.#probing.size >= MOST_AT_ONCE;
      if (isBusy) return this.#schedule(name, WAIT_MS);
      this.#begin(name);
    });
    this.#cancels.set(name, cancel);
  }

  /** In place of the next one that is due. */
  #probeNow(name: string): void {
    this.#cancels.get(name)?.();
    this.#begin(name);
  }

  #begin(name: string): void {
    const { logger } = this.#options.services;
    this.#probe(name).catch((error) => logger.error({ err: error, route: name }, 'gateway.probe_failed'));
  }

  async #probe(name: string): Promise<void> {
    const route = this.#routes.get(name);
    if (!route || this.#probing.has(name)) return;
    this.#probing.add(name);
    try {
      await route.token?.ready();
      if (this.#stop.signal.aborted) return;
      this.#publishToken(name, route);
      if (this.#options.isUnloaded(route)) {
        this.#uncalled.add(name);
        this.#reset(name, NOT_CALLED); // what an earlier process found
      } else if (route.reason === undefined) await this.#publishResult(name, route);
      else if (!this.#context(name)?.token) this.#reset(name, route.reason);
    } finally {
      this.#probing.delete(name);
      const { everyMs, random } = this.#options;
      // When the route changed meanwhile, `follow` has scheduled the next probe already.
      if (this.#routes.get(name) === route) this.#schedule(name, everyMs * (0.9 + random() * 0.2));
    }
  }

  async #publishResult(name: string, route: Route): Promise<void> {
    const { services, probe } = this.#options;
    const result = await probe(route, this.#stop.signal);
    if (this.#stop.signal.aborted || this.#routes.get(name) !== route) return;
    const at = services.clock.now();
    this.#checkedAt.set(name, at);
    if (this.#isNew(name, result)) services.bus.publish(routeProbed, { route: name, at, ...result });
  }

  /** Tells the route's actor that its token can't be used, or can be used again; nothing of what it knows already. */
  #publishToken(name: string, route: Route): void {
    const { bus, clock } = this.#options.services;
    if (!route.token || route.url === undefined || this.#routes.get(name) !== route) return;
    const { problem } = route.token;
    const known = this.#context(name)?.token;
    const at = clock.now();
    if (!problem) {
      if (known) bus.publish(routeTokenRead, { type: 'TOKEN_USABLE', route: name, at });
      return;
    }
    const { reason, shown: _, ...facts } = problem;
    if (known?.problem === reason && known.lastGood === facts.lastGood) return;
    bus.publish(routeTokenRead, {
      type: 'TOKEN_UNUSABLE',
      route: name,
      at,
      problem: reason,
      ...tokenFacts(facts),
    });
  }

  /** Failures are published until the alert is raised: the machine counts them. */
  #isNew(name: string, { found, reason, tools }: ProbeResult): boolean {
    const known = this.#context(name);
    if (!known || known.found !== found || known.reason !== reason || known.tools !== tools) return true;
    return found !== 'ok' && found !== 'undocumented' && known.failures < ALERT_AFTER;
  }

  #reset(name: string, reason: string): void {
    const { bus, clock } = this.#options.services;
    const known = this.#context(name);
    if (!known || (known.found === undefined && known.reason === reason && !known.token)) return;
    this.#checkedAt.delete(name);
    bus.publish(routeReset, { route: name, at: clock.now(), reason });
  }

  #context(name: string): RouteHealthContext | undefined {
    return this.#options.services.actors.get(routeHealthActor, name)?.context;
  }

  /** Routes that were probed by an earlier run too. */
  #recordedRoutes(): string[] {
    return this.#options.services.actors.list(routeHealthActor).map(({ key }) => key);
  }
}

/** Reasons of an upstream that is away as a whole, whatever is asked of it. */
const AWAY: ReadonlySet<string> = new Set(['does not answer in time', 'cannot be reached']);

const tokenFacts = ({ lastGood, issued, endsAt }: Omit<TokenProblem, 'reason' | 'shown'>) => ({
  lastGood,
  ...(issued && { issued }),
  ...(endsAt !== undefined && { endsAt }),
});

/** @returns what an operator reads about a token that can't be used */
function tokenText(token: RouteHealthContext['token']): string {
  const { problem = '', lastGood = false, issued = false, endsAt } = token ?? {};
  if (issued) {
    const then = lastGood && endsAt !== undefined ? `; the last one goes on until ${isoTime(endsAt)}` : '';
    return `no token is issued for it: ${problem}${then}`;
  }
  return `its token can not be used: ${problem}${lastGood ? '; the last good one goes on until the process ends' : ''}`;
}
