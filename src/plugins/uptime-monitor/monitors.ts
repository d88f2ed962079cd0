import type { Services } from '../../core/host/plugin/definition.ts';
import { counted } from '../../core/host/terminal.ts';
import { newCorrelation } from '../../core/kernel/clock.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { MonitorEvent, MonitorSettings } from '../../machines/uptime-monitor/diagnosis.ts';
import { monitorActor } from './actor.ts';
import { BeatHistory } from './beat-history.ts';
import { UptimeMonitorError } from './errors.ts';
import type { PushTokens } from './push-tokens.ts';
import { type MonitorState, stateOf } from './spells.ts';
import { type PushReply, takePush } from './take-push.ts';
import { type MonitorSnapshot, type MonitorView, viewOf } from './view.ts';

/** A monitor with its place in the list, from 1. */
export interface Listed {
  readonly id: number;
  readonly view: MonitorView;
  readonly state: MonitorSnapshot;
}

type WithoutTime<E> = E extends { at: number } ? Omit<E, 'at'> : never;

/** Events that a start sends before it waits for the log. */
const AT_ONCE = 500;
/** Monitors that a health page names. */
const NAMED = 5;

/** The listed monitors: takes their beats, shows them, and carries out what operators request. */
export class Monitors {
  readonly beats: BeatHistory;
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
    this.beats = new BeatHistory(services.log);
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

  /** Starts to watch every listed monitor, and releases those that are no longer listed. */
  async watch(signal: AbortSignal): Promise<void> {
    const { actors } = this.#services;
    const meta = { correlation: newCorrelation() };
    const at = this.now;
    for (const { key, value } of actors.list(monitorActor)) {
      if (!this.#settings.has(key) && value !== 'released') {
        actors.send(monitorActor, key, { type: 'RELEASE', at }, meta);
      }
    }
    const isNew = (name: string) => actors.get(monitorActor, name) === undefined;
    const fresh = [...this.#settings.keys()].filter(isNew);
    const later = new Set(fresh.slice(AT_ONCE));
    let sent = 0;
    for (const [name, settings] of this.#settings) {
      if (later.has(name)) continue;
      const done = actors.send(monitorActor, name, { type: 'WATCH', at, settings }, meta);
      sent += 1;
      if (sent % AT_ONCE === 0) await done.durable();
      signal.throwIfAborted();
    }
    void this.#watchNew(later);
  }

  /** Ends the work that a start left for later. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Watches the last of very many new monitors after the start: they have no timer yet that could fire too early. */
  async #watchNew(names: ReadonlySet<string>): Promise<void> {
    const { actors, logger } = this.#services;
    const meta = { correlation: newCorrelation() };
    try {
      for (const name of names) {
        await new Promise((resolve) => setImmediate(resolve));
        if (this.#isStopped) return;
        const settings = this.#settings.get(name);
        if (!settings) continue;
        const done = actors.send(monitorActor, name, { type: 'WATCH', at: this.now, settings }, meta);
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
    const state = this.#services.actors.get(monitorActor, name);
    return id === undefined || !state ? undefined : { id, state, view: viewOf(state, this.now, details) };
  }

  /** The monitor at a place in the list, from 1. */
  numbered(id: number): Listed | undefined {
    const [name] = [...this.#settings.keys()].slice(id - 1, id);
    return name === undefined || !Number.isInteger(id) || id < 1 ? undefined : this.find(name);
  }

  /** Every monitor with all details, for the operator. */
  all(): MonitorView[] {
    return [...this.#settings.keys()].flatMap((name) => this.find(name, true)?.view ?? []);
  }

  pages(): { slug: string; states: MonitorState[] }[] {
    return [...this.#bySlug].map(([slug, names]) => ({
      slug,
      states: names.flatMap((name) => {
        const state = this.#services.actors.get(monitorActor, name);
        return state ? stateOf(state) : [];
      }),
    }));
  }

  /**
   * Carries out what an operator requests for a monitor.
   *
   * @throws HF_UPTIME_MONITOR_UNKNOWN there is none of that name
   * @throws HF_UPTIME_MONITOR_STATE the monitor's state does not allow it
   */
  async act(
    name: string,
    action: WithoutTime<Extract<MonitorEvent, { type: 'ACK' | 'PAUSE' | 'UNPAUSE' }>>,
    correlation?: string,
  ): Promise<MonitorView> {
    if (!this.#settings.has(name)) {
      const names = [...this.#settings.keys()].slice(0, 10).join(', ');
      throw new UptimeMonitorError('HF_UPTIME_MONITOR_UNKNOWN', { monitor: name, known: names || 'none' });
    }
    const event = { ...action, at: this.now };
    const sent = this.#services.actors.send(monitorActor, name, event, { correlation });
    const record = await sent.durable();
    const state = this.#services.actors.get(monitorActor, name);
    if (!state) throw new Error(`monitor ${name} has no actor`);
    const view = viewOf(state, this.now);
    if (record.ignored)
      throw new UptimeMonitorError('HF_UPTIME_MONITOR_STATE', { monitor: name, state: view.state });
    return view;
  }

  /** For health pages: how many monitors are in each state, and why those that are down are. */
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
    const present = Object.entries(counts).flatMap(([state, count]) =>
      count > 0 ? [`${count} ${state}`] : [],
    );
    const all =
      views.length === 0 ? 'none is listed' : `${counted(views.length, 'monitor')}: ${present.join(', ')}`;
    return {
      text: [all, ...named].join('; '),
      ...(down.length > 0 && { ok: false, reason: named.join('; ') }),
      ...counts,
    };
  }
}
