import { z } from 'zod';
import type { Services } from '../../core/host/plugin/definition.ts';
import type { Route } from '../../core/kernel/actors/definition.ts';
import type { ActorSystem } from '../../core/kernel/actors/system.ts';
import type { ActorState } from '../../core/kernel/actors/transition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { type Json, toPlain } from '../../core/kernel/json.ts';
import { logRecordSchema } from '../../core/kernel/log/record.ts';
import type { ArrivedState } from './messages/every-host.ts';

const { value, context } = logRecordSchema.shape.to.shape;

/** An actor as another host sends it: timers and effects stay with that host. */
const sharedState = z.object({
  machine: z.string(),
  version: logRecordSchema.shape.version,
  value,
  context: context.unwrap(),
  at: z.int().nonnegative(),
});

export interface SharedActorsOptions {
  readonly services: Pick<Services, 'clock' | 'logger'> & {
    readonly actors: Pick<ActorSystem, 'states' | 'snapshot' | 'adopt'>;
    readonly declarations: () => { readonly routes: readonly Pick<Route, 'everyHost' | 'ownState' | 'to'>[] };
  };
  /** Has every host hear a state. */
  readonly send: (ref: string, state: Json, asOf: number) => Promise<void>;
  /** Asks the other hosts to send what they have. @returns how many have sent all of it */
  readonly ask: () => Promise<number>;
  /** How many other hosts live; undefined while that is not known. */
  readonly others: () => number | undefined;
  /** Resolves when this host has read everything that was sent before. */
  readonly mark: () => Promise<void>;
}

/** Between two questions to hosts that have not sent what they have, milliseconds. */
const ASK_AGAIN_MS = 2_000;

/**
 * The actors that live on every host, because routes of theirs go to every host: e.g. the gateway's keys. Each host takes the same
 * changes in the same order; what a host has that the others cannot know is sent to them as a whole (docs/cluster.md, "Joining").
 */
export class SharedActors {
  readonly #options: SharedActorsOptions;
  #sharing: Promise<boolean> = Promise.resolve(true);
  #completing: Promise<void> | undefined;
  /** How often messages were missed. */
  #missed = 0;
  #isStopped = false;

  constructor(options: SharedActorsOptions) {
    this.#options = options;
  }

  /** Messages were missed, and not every host that lives has sent yet what it has: a key may have been revoked meanwhile. */
  get isIncomplete(): boolean {
    return this.#completing !== undefined;
  }

  /** Messages were missed: exchanges states with the others, and asks again until each of them has sent what it has. */
  complete(): Promise<void> {
    this.#missed += 1;
    this.#completing ??= this.#complete().finally(() => {
      this.#completing = undefined;
    });
    return this.#completing;
  }

  stop(): void {
    this.#isStopped = true;
  }

  /**
   * Sends what this host has to the others: when it joins, and after messages were missed. One pass at a time.
   *
   * @returns whether all of it was sent
   */
  share(): Promise<boolean> {
    this.#sharing = this.#sharing.then(() => this.#share());
    return this.#sharing;
  }

  async #complete(): Promise<void> {
    const { ask, others, services, mark } = this.#options;
    for (;;) {
      const missed = this.#missed;
      await this.share();
      const sent = await ask();
      if (this.#isStopped) return;
      const isAnswered = sent >= (others() ?? Number.POSITIVE_INFINITY);
      // They have sent it: now this host reads it.
      const isRead =
        isAnswered &&
        (await mark()
          .then(() => true)
          .catch(() => false));
      if (this.#isStopped || (isRead && missed === this.#missed)) return;
      await new Promise<void>((resolve) => services.clock.after(ASK_AGAIN_MS, resolve));
    }
  }

  async #share(): Promise<boolean> {
    const { services, send } = this.#options;
    let isWhole = true;
    for (const type of this.#types()) {
      for (const state of services.actors.states(type)) {
        const { ref, machine, version, at } = state;
        const shared = { machine, version, value: state.value, context: state.context, at };
        try {
          await send(ref, toPlain(shared, 'state'), orderOf(state));
        } catch (error) {
          if (isCoded(error, 'HF_CLUSTER_STOPPED')) return false;
          isWhole = false;
          services.logger.warn({ actor: ref, err: error }, 'cluster.state_not_shared');
        }
      }
    }
    return isWhole;
  }

  /** Takes the state of an actor that this host does not have, or has as it was before. */
  take({ from, ref, state, asOf }: ArrivedState, own: string): void {
    const { actors, logger } = this.#options.services;
    if (from === own || !this.#types().some((type) => ref.startsWith(`${type}/`))) return;
    const known = actors.snapshot(ref);
    if (known && orderOf(known) >= asOf) return;
    const { data, error } = sharedState.safeParse(state);
    if (!data) {
      logger.warn({ actor: ref, from, reason: error.issues[0]?.message }, 'cluster.state_malformed');
      return;
    }
    const left: ActorState = { ref, ...data, done: false, seq: 0, timers: {}, effects: {} };
    try {
      actors.adopt({ host: from, incarnation: '', seq: 0, hash: '', states: [left] });
    } catch (error) {
      logger.warn({ actor: ref, from, err: error }, 'cluster.state_not_taken');
    }
  }

  #types(): readonly string[] {
    const { routes } = this.#options.services.declarations();
    return [
      ...new Set(routes.filter(({ everyHost, ownState }) => everyHost && !ownState).map(({ to }) => to)),
    ];
  }
}

/** The newest message to every host that an actor has taken. */
function orderOf({ context }: Readonly<ActorState>): number {
  const { order } = context as { readonly order?: unknown };
  return typeof order === 'number' ? order : 0;
}
