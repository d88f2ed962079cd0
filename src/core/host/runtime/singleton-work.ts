import type { Cluster, Lease, Singleton } from '../../contracts/cluster.ts';
import type { Inheritance } from '../../kernel/actors/adoption.ts';
import type { EffectGuard } from '../../kernel/actors/effect.ts';
import { type Clock, passed } from '../../kernel/clock.ts';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { HostError } from '../errors/host-error.ts';
import type { PluginHost, RuntimeServices } from '../plugin/host.ts';
import type { Registrations } from '../plugin/registrations.ts';
import type { MovingControls } from './moving-controls.ts';
import type { RecoveredEffects } from './recover-actors.ts';
import { startSchedules } from './schedules.ts';

/** What a singleton runs with, once everything else runs. */
export interface SingletonParts {
  readonly cluster: Cluster;
  readonly services: RuntimeServices;
  readonly effects: RecoveredEffects;
  readonly controls: MovingControls;
}

/** How often a lease is looked at that was not renewed in time, milliseconds. */
const LOOK_MS = 100;
/** How long effects under way may take at a stop of the runtime, milliseconds. */
const PATIENCE_MS = 5_000;

/** From the beginning of a singleton here to its end. */
class Term {
  readonly lease: Lease;
  /** Settled when it has begun, or failed to. */
  readonly begun = Promise.withResolvers<void>();
  hasTakenUp = false;
  hasBegun = false;
  /** It is about to end: no message reaches its actors, and none of their effects begins. */
  isLeaving = false;
  /** It ends or has ended: nothing of it may begin any more. */
  isOver = false;
  readonly #over = Promise.withResolvers<never>();
  endSchedules = (): void => {};
  followClock = (): void => {};
  ended: Promise<void> | undefined;

  constructor(lease: Lease) {
    this.lease = lease;
    for (const { promise } of [this.begun, this.#over]) promise.catch(() => {});
  }

  end(): void {
    this.isOver = true;
    this.#over.reject(new HostError('HF_PLUGIN_INTERRUPTED'));
  }

  /** Waits for something, but not beyond its end: a full log takes nothing. @throws HF_PLUGIN_INTERRUPTED it ends */
  within<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#over.promise]);
  }
}

interface Members {
  readonly host: PluginHost;
  readonly registrations: Registrations;
  readonly plugins: ReadonlySet<string>;
}

/** One singleton on this host: its work begins and ends as the cluster says. */
export class SingletonWork implements Singleton, EffectGuard {
  readonly name: string;
  readonly actorTypes: readonly string[];
  readonly machines: Readonly<Record<string, number>>;
  readonly #members: Members;
  #parts: SingletonParts | undefined;
  #term: Term | undefined;
  #isClosed = false;

  constructor(name: string, members: Members) {
    this.name = name;
    this.#members = members;
    const actors = this.#of(members.registrations.actors);
    this.actorTypes = actors.map(({ type }) => type);
    this.machines = Object.fromEntries(actors.map(({ type, version }) => [type, version]));
  }

  /** Of this host in the cluster. */
  get host(): string {
    return this.#parts?.cluster.host ?? '';
  }

  prepare(parts: SingletonParts): void {
    this.#parts = parts;
  }

  /** Whether its actors take events here. */
  get takesEvents(): boolean {
    const term = this.#term;
    return term?.hasTakenUp === true && !term.isLeaving && !term.isOver;
  }

  get isRunning(): boolean {
    return this.#term?.hasBegun === true && this.takesEvents;
  }

  followClock(): void {
    this.#term?.followClock();
  }

  async begin(lease: Lease, inheritance?: Inheritance): Promise<void> {
    const parts = this.#parts;
    if (!parts || this.#isClosed) throw new HostError('HF_PLUGIN_INTERRUPTED');
    if (this.#term) throw new Error(`${this.name} has begun here already`);
    const term = new Term(lease);
    this.#term = term;
    try {
      await this.#begin(term, parts, inheritance);
      term.hasBegun = true;
      term.begun.resolve();
      parts.services.logger.info({ singleton: this.name, fencing: lease.token }, 'singleton.began');
    } catch (error) {
      term.begun.reject(error);
      const { logger } = parts.services;
      logger.error({ singleton: this.name, fencing: lease.token, err: error }, 'singleton.did_not_begin');
      await this.#finish(term, parts, 'it did not begin');
      throw error;
    }
  }

  async end(reason: string, patienceMs = 0): Promise<void> {
    const [term, parts] = [this.#term, this.#parts];
    if (!term || !parts) return;
    if (patienceMs > 0 && term.hasBegun) await this.#rest(term, parts, patienceMs);
    if (!term.isOver) {
      term.end();
      this.#members.host.interruptSingleton(this.name);
    }
    await term.begun.promise.catch(() => {});
    await this.#finish(term, parts, reason);
  }

  /** Ends it, and lets it begin no more. */
  async close(reason: string): Promise<void> {
    this.#isClosed = true;
    await this.end(reason, PATIENCE_MS);
  }

  /** A record is on the stream, the plugins have started, and the lease is not over. @throws it ends */
  async ready(seq: number): Promise<void> {
    const [term, parts] = [this.#term, this.#parts];
    if (!term || !parts) throw this.#elsewhere('another host may hold it');
    await term.begun.promise;
    await parts.cluster.mirrored(seq);
    // It may be renewed yet; if another host has it, the term ends.
    while (!term.isOver && isPast(term.lease, parts.services.clock))
      await passed(parts.services.clock, LOOK_MS);
  }

  /** @throws HF_PLUGIN_ELSEWHERE its lease is over */
  fencingToken(): string {
    const [term, parts] = [this.#term, this.#parts];
    if (!term || !parts || term.isOver) throw this.#elsewhere('another host may hold it');
    if (isPast(term.lease, parts.services.clock)) throw this.#elsewhere('its lease is over');
    return term.lease.token;
  }

  async #begin(term: Term, parts: SingletonParts, inheritance: Inheritance | undefined): Promise<void> {
    const { host, registrations } = this.#members;
    const { services, effects, controls } = parts;
    const { actors, bus, clock, logger } = services;
    const states = await term.within(actors.takeUp(this.actorTypes, inheritance));
    this.#goOn(term);
    term.hasTakenUp = true;
    await host.startSingleton(this.name);
    this.#goOn(term);
    this.#needStarted([...this.#of(registrations.actors), ...this.#of(registrations.controls)]);
    effects.leftOpen(states)();
    controls.begin(this.#of(registrations.controls));
    const schedules = host.started(this.#of(registrations.schedules));
    term.endSchedules = startSchedules(schedules, bus, clock, (follow) => {
      term.followClock = follow;
    });
    const ready = registrations.readyWork.filter(({ owner }) => this.#members.plugins.has(owner));
    for (const { owner, work } of ready) {
      try {
        work();
      } catch (error) {
        logger.error({ plugin: owner, err: error }, 'plugin.ready_failed');
      }
    }
  }

  /** @throws HF_PLUGIN_ELSEWHERE a plugin that a part of it belongs to has failed on this host */
  #needStarted(parts: readonly { readonly owner: string }[]): void {
    const started = this.#members.host.started(parts);
    const absent = parts.find((part) => !started.includes(part));
    if (!absent) return;
    const where = 'it has not started here';
    throw new HostError('HF_PLUGIN_ELSEWHERE', { what: `Plugin ${absent.owner}`, where });
  }

  #goOn({ isOver }: Term): void {
    if (isOver || this.#isClosed) throw new HostError('HF_PLUGIN_INTERRUPTED');
  }

  #finish(term: Term, parts: SingletonParts, reason: string): Promise<void> {
    term.ended ??= this.#end(term, parts, reason);
    return term.ended;
  }

  /** Begins nothing any more. Resolves when the effects under way have come to their end, or after a time. */
  async #rest(term: Term, { effects, controls }: SingletonParts, patienceMs: number): Promise<void> {
    term.isLeaving = true;
    this.#endInput(term, controls);
    await effects.restOf(this.actorTypes, patienceMs);
  }

  #endInput(term: Term, controls: MovingControls): void {
    term.endSchedules();
    controls.end(this.#of(this.#members.registrations.controls).map(({ owner }) => owner));
  }

  async #end(term: Term, { services, effects, controls }: SingletonParts, reason: string): Promise<void> {
    term.end();
    this.#endInput(term, controls);
    await effects.endOf(this.actorTypes);
    await this.#members.host.stopSingleton(this.name, reason);
    // What the plugins did at their stop may have asked for more.
    await effects.endOf(this.actorTypes);
    services.actors.setAside(this.actorTypes);
    this.#term = undefined;
    services.logger.info({ singleton: this.name, fencing: term.lease.token, reason }, 'singleton.ended');
  }

  #elsewhere(where: string): HoldfastError {
    return new HostError('HF_PLUGIN_ELSEWHERE', { what: `Singleton ${this.name}`, where });
  }

  #of<T extends { readonly singleton?: string }>(declared: readonly T[]): readonly T[] {
    return declared.filter(({ singleton }) => singleton === this.name);
  }
}

function isPast(lease: Lease, clock: Clock): boolean {
  return clock.monotonic() >= lease.deadline();
}
