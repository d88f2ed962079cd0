import { z } from 'zod';
import { defineTopic, type Topic } from '../../../bus/topic.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { defineRoute } from '../../../core/kernel/actors/route.ts';
import { actorRef } from '../../../core/kernel/ids.ts';
import type { LogRecord } from '../../../core/kernel/log/record.ts';
import {
  ALERT_AFTER,
  type Probed,
  type RouteHealthContext,
  type RouteHealthEvent,
} from '../../../machines/gateway/route-health.ts';
import type { RouteHealth } from '../routes/operations.ts';
import type { Route, RouteTable } from '../routes/route.ts';
import type { Look } from './probe.ts';

/** One actor a route; its key is the route's name. */
export const HEALTH_ACTOR = 'gateway.route_health';

type RouteProbed = Omit<Probed, 'type'> & { readonly route: string };

const routeProbed: Topic<RouteProbed> = defineTopic(
  'gateway.route_probed',
  z.object({
    route: z.string(),
    at: z.number(),
    found: z.enum(['ok', 'undocumented', 'empty', 'refused', 'failed']),
    reason: z.string().optional(),
    tools: z.number().optional(),
  }) as unknown as z.ZodType<RouteProbed>,
  "A route's upstream was looked at, and something is new.",
);

const routeReset = defineTopic(
  'gateway.route_reset',
  z.object({ route: z.string(), at: z.number(), reason: z.string() }),
  "What was known of a route's upstream says nothing any more.",
);

export const healthRoutes = [
  defineRoute(routeProbed, HEALTH_ACTOR, ({ payload: { route, ...look } }) => [
    { key: route, event: { type: 'PROBED', ...look } },
  ]),
  defineRoute(routeReset, HEALTH_ACTOR, ({ payload: { route, ...facts } }) => [
    { key: route, event: { type: 'RESET', ...facts } },
  ]),
] as const;

/** What the prober stands on. */
export interface ProberParts {
  readonly services: Pick<Services, 'actors' | 'bus' | 'clock' | 'logger'>;
  /** Between two looks at one route, milliseconds, more or less a tenth; 0 looks at none. */
  readonly everyMs: number;
  readonly look: (route: Route, stop: AbortSignal) => Promise<Look>;
  /** A number from 0 up to 1. */
  readonly random: () => number;
}

/** The first look comes soon, and not at all routes at once. */
const FIRST_MS = 3_000;
/** Looks that run at the same time. */
const AT_ONCE = 8;

/**
 * Looks at every route's upstream from time to time. What is new goes to the route's actor, which decides what it
 * means; that all is as it was is not recorded each minute.
 */
export class Prober {
  readonly #parts: ProberParts;
  readonly #cancels = new Map<string, () => void>();
  readonly #checkedAt = new Map<string, number>();
  readonly #stop = new AbortController();
  #routes: ReadonlyMap<string, Route> = new Map();
  #running = 0;

  constructor(parts: ProberParts) {
    this.#parts = parts;
  }

  /** Follows a table: a route that is new or another one is looked at soon, one that is gone no more. */
  follow({ routes }: RouteTable): void {
    const before = this.#routes;
    this.#routes = routes;
    for (const name of new Set([...before.keys(), ...routes.keys(), ...this.#known()])) {
      const route = routes.get(name);
      if (route !== undefined && before.get(name) === route) continue;
      this.#cancels.get(name)?.();
      this.#cancels.delete(name);
      if (route === undefined) this.#reset(name, 'there is no such route any more');
      else {
        if (before.has(name)) this.#reset(name, 'its definition changed');
        this.#arm(name, this.#parts.random() * Math.min(FIRST_MS, this.#parts.everyMs));
      }
    }
  }

  /** How a route is, as its actor knows it. */
  health(name: string): RouteHealth | undefined {
    const state = this.#parts.services.actors.snapshot(actorRef(HEALTH_ACTOR, name));
    if (!state) return undefined;
    const { reason, tools, checkedAt } = state.context as unknown as RouteHealthContext;
    const at = this.#checkedAt.get(name) ?? checkedAt;
    return {
      state: String(state.value),
      ...(reason !== undefined && { reason }),
      ...(tools !== undefined && { tools }),
      ...(at !== undefined && { checkedAt: new Date(at).toISOString() }),
    };
  }

  stop(): void {
    this.#stop.abort();
    for (const cancel of this.#cancels.values()) cancel();
  }

  #arm(name: string, delayMs: number): void {
    if (this.#parts.everyMs === 0 || this.#stop.signal.aborted) return;
    const cancel = this.#parts.services.clock.after(delayMs, () => {
      // Too many at once: a moment later.
      if (this.#running >= AT_ONCE) return this.#arm(name, 1_000);
      this.#look(name).catch((error) =>
        this.#parts.services.logger.error({ err: error, route: name }, 'gateway.probe_failed'),
      );
    });
    this.#cancels.set(name, cancel);
  }

  async #look(name: string): Promise<void> {
    const route = this.#routes.get(name);
    if (!route) return;
    this.#running += 1;
    try {
      if (route.reason === undefined) await this.#probe(name, route);
      else this.#reset(name, route.reason);
    } finally {
      this.#running -= 1;
      // A swap during the look has armed the next one already.
      if (this.#routes.get(name) === route)
        this.#arm(name, this.#parts.everyMs * (0.9 + this.#parts.random() * 0.2));
    }
  }

  async #probe(name: string, route: Route): Promise<void> {
    const { services, look } = this.#parts;
    const found = await look(route, this.#stop.signal);
    if (this.#stop.signal.aborted || this.#routes.get(name) !== route) return;
    const at = services.clock.now();
    this.#checkedAt.set(name, at);
    if (this.#isNews(name, found)) services.bus.publish(routeProbed, { route: name, at, ...found });
  }

  #isNews(name: string, look: Look): boolean {
    const known = this.#context(name);
    if (known?.found !== look.found || known.reason !== look.reason || known.tools !== look.tools)
      return true;
    const isWell = look.found === 'ok' || look.found === 'undocumented';
    return !isWell && known.failures < ALERT_AFTER;
  }

  #reset(name: string, reason: string): void {
    const { bus, clock } = this.#parts.services;
    const known = this.#context(name);
    if (!known || (known.found === undefined && known.reason === reason)) return;
    this.#checkedAt.delete(name);
    bus.publish(routeReset, { route: name, at: clock.now(), reason });
  }

  #context(name: string): RouteHealthContext | undefined {
    const state = this.#parts.services.actors.snapshot(actorRef(HEALTH_ACTOR, name));
    return state?.context as unknown as RouteHealthContext | undefined;
  }

  /** Routes that a run before this one looked at. */
  #known(): string[] {
    return this.#parts.services.actors
      .list(HEALTH_ACTOR)
      .map(({ ref }) => ref.slice(HEALTH_ACTOR.length + 1));
  }
}

/** A record of a route's health in an operator's words, for `holdfast log`. */
export function describeHealthRecord({ event: recorded, to }: LogRecord): string | undefined {
  const event = recorded as unknown as RouteHealthEvent;
  switch (event.type) {
    case 'PROBED': {
      const { reason, tools } = event;
      if (event.found === 'ok') return `is healthy${tools === undefined ? '' : `, ${tools} tools`}`;
      return `is ${String(to.value)}: its upstream ${reason}`;
    }
    case 'RESET':
      return `is looked at anew: ${event.reason}`;
    default:
      return undefined;
  }
}
