import type { Services } from '../../core/host/plugin/definition.ts';
import type { ActorState } from '../../core/kernel/actors/state.ts';
import { actorRef, newCorrelation } from '../../core/kernel/ids.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { MonitorSettings } from '../../machines/uptime-monitor/diagnosis.ts';
import { UptimeMonitorError } from './errors.ts';
import type { PushTokens } from './push-tokens.ts';
import type { BeatRing } from './take-push.ts';
import { MONITOR_ACTOR, type PushReply, takePush } from './take-push.ts';
import { type MonitorState, type MonitorView, stateOf, viewOf } from './view.ts';

/** A monitor by its place in the list, from 1, with its actor's state. */
export interface Listed {
  readonly id: number;
  readonly view: MonitorView;
  readonly state: Readonly<ActorState>;
}

/** Sent at a start before the log is waited for. */
const AT_ONCE = 500;
/** Causes that a health page names. */
const NAMED = 5;

/** The listed monitors: what is pushed to them, asked of them, and done to them. */
export class Monitors {
  readonly beats = new Map<string, BeatRing>();
  readonly #services: Services;
  readonly #settings: ReadonlyMap<string, MonitorSettings>;
  readonly #ids: ReadonlyMap<string, number>;
  readonly #bySlug: ReadonlyMap<string, readonly string[]>;
  readonly #tokens: PushTokens;
  readonly #details: boolean;
  #isStopped = false;

  constructor(
    services: Services,
    settings: readonly MonitorSettings[],
    tokens: PushTokens,
    details: boolean,
  ) {
    this.#services = services;
    this.#settings = new Map(settings.map((each) => [each.name, each]));
    this.#ids = new Map(settings.map(({ name }, index) => [name, index + 1]));
    this.#bySlug = new Map(
      Object.entries(Object.groupBy(settings, ({ slug }) => slug)).map(([slug, group = []]) => [
        slug,
        group.map(({ name }) => name),
      ]),
    );
    this.#tokens = tokens;
    this.#details = details;
  }

  get now(): number {
    return this.#services.clock.now();
  }

  /** Tells every monitor that it is watched again, and releases those that are no longer listed. */
  async watch(signal: AbortSignal): Promise<void> {
    const { actors } = this.#services;
    const meta = { correlation: newCorrelation() };
    const at = this.now;
    for (const { ref, value, context } of actors.list(MONITOR_ACTOR)) {
      const { name } = context as unknown as MonitorSettings;
      if (!this.#settings.has(name) && value !== 'released') actors.send(ref, { type: 'RELEASE', at }, meta);
    }
    const isNew = (name: string) => actors.snapshot(actorRef(MONITOR_ACTOR, name)) === undefined;
    const fresh = [...this.#settings.keys()].filter(isNew);
    const later = new Set(fresh.slice(AT_ONCE));
    let sent = 0;
    for (const [name, settings] of this.#settings) {
      if (later.has(name)) continue;
      const done = actors.send(actorRef(MONITOR_ACTOR, name), { type: 'WATCH', at, settings }, meta);
      sent += 1;
      if (sent % AT_ONCE === 0) await done.durable();
      signal.throwIfAborted();
    }
    void this.#watchNew(later);
  }

  /** Ends what a start has left to do. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Of very many new ones the last are watched once it runs: they have no timer yet that could be too soon. */
  async #watchNew(names: ReadonlySet<string>): Promise<void> {
    const { actors, logger } = this.#services;
    const meta = { correlation: newCorrelation() };
    try {
      for (const name of names) {
        await new Promise((resolve) => setImmediate(resolve));
        if (this.#isStopped) return;
        const settings = this.#settings.get(name);
        const event = { type: 'WATCH', at: this.now, settings };
        const done = actors.send(actorRef(MONITOR_ACTOR, name), event, meta);
        if (!done.record) await done.durable(); // the log has no room for the moment
      }
    } catch (err) {
      if (!this.#isStopped) logger.warn({ err }, 'uptime-monitor.not_all_watched');
    }
  }

  take(token: string, query: Readonly<Record<string, unknown>>): Promise<PushReply> {
    const { actors, clock } = this.#services;
    return takePush({ actors, clock, tokens: this.#tokens, beats: this.beats }, token, query);
  }

  has(slug: string): boolean {
    return this.#bySlug.has(slug);
  }

  /** The monitors of a status page, in their order; none where there is no such page. */
  of(slug: string): Listed[] {
    return (this.#bySlug.get(slug) ?? []).flatMap((name) => this.find(name) ?? []);
  }

  find(name: string, details = this.#details): Listed | undefined {
    const id = this.#ids.get(name);
    const state = this.#services.actors.snapshot(actorRef(MONITOR_ACTOR, name));
    return id === undefined || !state ? undefined : { id, state, view: viewOf(state, this.now, details) };
  }

  /** The monitor at a place in the list, from 1. */
  numbered(id: number): Listed | undefined {
    const [name] = [...this.#settings.keys()].slice(id - 1, id);
    return name === undefined || !Number.isInteger(id) || id < 1 ? undefined : this.find(name);
  }

  /** Every monitor with all that is known, for the operator. */
  all(): MonitorView[] {
    return [...this.#settings.keys()].flatMap((name) => this.find(name, true)?.view ?? []);
  }

  pages(): { slug: string; states: MonitorState[] }[] {
    return [...this.#bySlug].map(([slug, names]) => ({
      slug,
      states: names.flatMap((name) => {
        const state = this.#services.actors.snapshot(actorRef(MONITOR_ACTOR, name));
        return state ? stateOf(state) : [];
      }),
    }));
  }

  /**
   * What an operator does to a monitor.
   *
   * @throws HF_UPTIME_MONITOR_UNKNOWN there is none of that name
   * @throws HF_UPTIME_MONITOR_STATE it is not so that this could be done
   */
  async act(
    name: string,
    event: { type: 'ACK' | 'PAUSE' | 'UNPAUSE'; [field: string]: unknown },
  ): Promise<MonitorView> {
    if (!this.#settings.has(name)) {
      const known = [...this.#settings.keys()].slice(0, 10).join(', ');
      throw new UptimeMonitorError('HF_UPTIME_MONITOR_UNKNOWN', { monitor: name, known: known || 'none' });
    }
    const sent = this.#services.actors.send(actorRef(MONITOR_ACTOR, name), { ...event, at: this.now });
    const record = await sent.durable();
    const view = this.find(name, true)?.view as MonitorView;
    if (record.ignored)
      throw new UptimeMonitorError('HF_UPTIME_MONITOR_STATE', { monitor: name, state: view.state });
    return view;
  }

  /** For health pages: how many are how, and why those are down that are. */
  health(): JsonObject {
    const views = this.all();
    const counts = Object.fromEntries(
      (['up', 'late', 'down', 'waiting', 'paused'] as const).map((state) => [
        state,
        views.filter((view) => view.state === state).length,
      ]),
    );
    const down = views.filter(({ state }) => state === 'down');
    const named = down.slice(0, NAMED).map(({ title, reason }) => `${title} is DOWN: ${reason}`);
    if (down.length > NAMED) named.push(`${down.length - NAMED} more are DOWN`);
    return { ...(down.length > 0 && { ok: false, reason: named.join('; ') }), ...counts };
  }
}
