import { z } from 'zod';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { ActorDefinition } from '../../../core/kernel/actors/definition.ts';
import type { ActorSystem } from '../../../core/kernel/actors/system.ts';
import type { ActorState } from '../../../core/kernel/actors/transition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject, type Json, type JsonObject, toPlain } from '../../../core/kernel/json.ts';
import { logRecordSchema } from '../../../core/kernel/log/record.ts';
import type { ArrivedState } from './every-host.ts';

const { value, context } = logRecordSchema.shape.to.shape;

/** An actor as another host sends it, when that host did: timers and effects stay there. */
const sharedState = z.object({
  machine: z.string(),
  version: logRecordSchema.shape.version,
  value,
  context: context.unwrap(),
  at: z.int().nonnegative(),
});

export interface SharedActorsOptions {
  readonly services: Pick<Services, 'clock' | 'logger'> & {
    readonly actors: Pick<ActorSystem, 'states' | 'snapshot' | 'deliver'>;
    readonly declarations: () => { readonly actors: readonly Pick<ActorDefinition, 'type' | 'hear'>[] };
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
 * The actors that live on every host, because their definitions `hear` those of others: e.g. the gateway's keys. Each host takes the same
 * changes in the same order; what a host has that the others cannot know is sent to them as a whole (docs/cluster.md, "What is guaranteed, and what not").
 */
export class SharedActors {
  readonly #options: SharedActorsOptions;
  #sharing: Promise<boolean> = Promise.resolve(true);
  #completing: Promise<void> | undefined;
  /** How often messages were missed, and when last. */
  #missed = 0;
  #missedAt: number | undefined;
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
    this.#missedAt = this.#options.services.clock.monotonic();
    this.#completing ??= this.#complete().finally(() => {
      this.#completing = undefined;
    });
    return this.#completing;
  }

  /** How long ago messages were missed, milliseconds; undefined when none were. */
  get missedMs(): number | undefined {
    return this.#missedAt === undefined
      ? undefined
      : this.#options.services.clock.monotonic() - this.#missedAt;
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
    for (const { type } of this.#shared()) {
      for (const { ref } of services.actors.states(type)) {
        try {
          await this.#send(ref, send);
        } catch (error) {
          if (isCoded(error, 'HF_CLUSTER_STOPPED')) return false;
          isWhole = false;
          services.logger.warn({ actor: ref, err: error }, 'cluster.state_not_shared');
        }
      }
    }
    return isWhole;
  }

  /** Sends an actor, and once more when it was changed on the way: who did not have it could not take that change. */
  async #send(ref: string, send: SharedActorsOptions['send']): Promise<void> {
    const { actors, clock } = this.#options.services;
    for (let sent: number | undefined; ; ) {
      const state = actors.snapshot(ref);
      if (!state || changedBy(state) === sent) return;
      sent = changedBy(state);
      const { machine, version, value, context } = state;
      await send(
        ref,
        toPlain({ machine, version, value, context, at: clock.now() }, 'state'),
        orderOf(state),
      );
    }
  }

  /** An actor hears what another host knows of it, or begins with that. */
  take({ from, ref, state }: ArrivedState, host: string): void {
    const { actors, logger, clock } = this.#options.services;
    const definition = this.#shared().find(({ type }) => ref.startsWith(`${type}/`));
    if (from === host || !definition) return;
    const { data, error } = sharedState.safeParse(state);
    if (!data) {
      logger.warn({ actor: ref, from, reason: error.issues[0]?.message }, 'cluster.state_malformed');
      return;
    }
    const at = clock.now();
    const known = actors.snapshot(ref);
    const own = known && { value: known.value, context: contextOf(known) };
    const event = definition.hear(own, { ...data, from, at, aheadMs: at - data.at });
    if (event) actors.deliver(ref, event);
  }

  #shared() {
    return this.#options.services
      .declarations()
      .actors.flatMap(({ type, hear }) => (hear === undefined ? [] : [{ type, hear }]));
  }
}

const contextOf = ({ context }: Readonly<ActorState>): JsonObject => (isObject(context) ? context : {});

/** The newest message to every host that an actor has taken. */
const orderOf = (state: Readonly<ActorState>): number => z.number().catch(0).parse(contextOf(state).order);

/** The newest of them that changed it. */
const changedBy = (state: Readonly<ActorState>): number =>
  z.number().catch(0).parse(contextOf(state).changed);
