import type { Services } from '../../../core/host/plugin/definition.ts';
import { ALERT_AFTER, type RouteHealthContext } from '../../../machines/gateway/route-health.ts';
import type { RouteHealth } from '../routes/operations.ts';
import type { Route, RouteTable } from '../routes/route.ts';
import { routeHealthActor, routeProbed, routeReset } from './actor.ts';
import type { ProbeResult } from './probe.ts';

export interface ProberOptions {
  readonly services: Pick<Services, 'actors' | 'bus' | 'clock' | 'logger'>;
  /** Time between two probes of one route, milliseconds; it varies by a tenth. With 0 nothing is probed. */
  readonly everyMs: number;
  readonly probe: (route: Route, stop: AbortSignal) => Promise<ProbeResult>;
  /** @returns a number from 0 up to 1 */
  readonly random: () => number;
}

/** The first probes come within this time, spread over it. */
const FIRST_MS = 3_000;
const MOST_AT_ONCE = 8;
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
  readonly #stop = new AbortController();
  #routes: ReadonlyMap<string, Route> = new Map();
  #running = 0;

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
        this.#schedule(name, this.#options.random() * Math.min(FIRST_MS, this.#options.everyMs));
      }
    }
  }

  /** @returns the health of a route as its actor knows it */
  health(name: string): RouteHealth | undefined {
    const state = this.#options.services.actors.get(routeHealthActor, name);
    if (!state) return undefined;
    const { reason, tools, checkedAt } = state.context;
    const at = this.#checkedAt.get(name) ?? checkedAt;
    return {
      state: state.value,
      ...(reason !== undefined && { reason }),
      ...(tools !== undefined && { tools }),
      ...(at !== undefined && { checkedAt: new Date(at).toISOString() }),
    };
  }

  stop(): void {
    this.#stop.abort();
    for (const cancel of this.#cancels.values()) cancel();
  }

  #schedule(name: string, delayMs: number): void {
    const { everyMs, services } = this.#options;
    if (everyMs === 0 || this.#stop.signal.aborted) return;
    const cancel = services.clock.after(delayMs, () => {
      if (this.#running >= MOST_AT_ONCE) return this.#schedule(name, WAIT_MS);
      this.#probe(name).catch((error) =>
        services.logger.error({ err: error, route: name }, 'gateway.probe_failed'),
      );
    });
    this.#cancels.set(name, cancel);
  }

  async #probe(name: string): Promise<void> {
    const route = this.#routes.get(name);
    if (!route) return;
    this.#running += 1;
    try {
      if (route.reason === undefined) await this.#publishResult(name, route);
      else this.#reset(name, route.reason);
    } finally {
      this.#running -= 1;
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

  /** Failures are published until the alert is raised: the machine counts them. */
  #isNew(name: string, { found, reason, tools }: ProbeResult): boolean {
    const known = this.#context(name);
    if (!known || known.found !== found || known.reason !== reason || known.tools !== tools) return true;
    return found !== 'ok' && found !== 'undocumented' && known.failures < ALERT_AFTER;
  }

  #reset(name: string, reason: string): void {
    const { bus, clock } = this.#options.services;
    const known = this.#context(name);
    if (!known || (known.found === undefined && known.reason === reason)) return;
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
