import { z } from 'zod';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { ActorDefinition } from '../../../core/kernel/actors/definition.ts';
import type { ActorSystem } from '../../../core/kernel/actors/system.ts';
import type { ActorState } from '../../../core/kernel/actors/transition.ts';
import { passed } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject, type Json, type JsonObject, toPlain } from '../../../core/kernel/json.ts';
import { logRecordSchema } from '../../../core/kernel/log/record.ts';
import type { ArrivedState } from './every-host.ts';
import { STATES_AT_ONCE } from './outgoing.ts';

const { value, context } = logRecordSchema.shape.to.shape;

/** An actor as another host sends it, when that host did: timers and effects stay there. */
const sharedState = z.object({
  machine: z.string(),
  version: logRecordSchema.shape.version,
  value,
  context: context.unwrap(),
  at: z.int().nonnegative(),
});

/** Until a state that could not be sent is sent again, milliseconds. */
const AGAIN_MS = 1_000;

export interface SharedActorsOptions {
  readonly services: Pick<Services, 'clock' | 'logger'> & {
    readonly actors: Pick<ActorSystem, 'states' | 'snapshot' | 'whenFree' | 'deliver'>;
    readonly declarations: () => {
      readonly actors: readonly Pick<ActorDefinition, 'type' | 'hear' | 'tell'>[];
    };
  };
  readonly host: string;
  /** Has every host hear a state. Rejects when that is not certain in time. */
  readonly send: (ref: string, state: Json) => Promise<void>;
}

interface SharedActor {
  readonly ref: string;
  readonly tell: ActorDefinition['tell'];
}

/**
 * The actors that live on every host, because their definitions `hear` those of others: e.g. the gateway's keys. Each host takes the same
 * changes in the same order; what a host has that the others cannot know is sent to them (docs/cluster.md, "What is guaranteed, and what not"):
 * as a whole, or what their definitions `tell` of it.
 */
export class SharedActors {
  readonly #options: SharedActorsOptions;

  constructor(options: SharedActorsOptions) {
    this.#options = options;
  }

  /**
   * Sends all that this host has, many at once; what cannot be sent now is sent again until it was.
   *
   * @param isOver asked between the states: the rest is not wanted any more
   * @returns whether all of it was sent: never of a state that is too large
   */
  async send(isOver: () => boolean): Promise<boolean> {
    const { actors } = this.#options.services;
    const refs = this.#shared()
      .flatMap(({ type, tell }) => actors.states(type).map(({ ref }) => ({ ref, tell })))
      .values();
    const { logger } = this.#options.services;
    let isWhole = true;
    let failures = 0;
    const failed = (ref: string, error: unknown) => {
      failures += 1;
      logger[failures === 1 ? 'warn' : 'debug']({ actor: ref, err: error }, 'cluster.state_not_shared');
    };
    const sender = async () => {
      for (const one of refs) if (!(await this.#sendUntilTaken(one, isOver, failed))) isWhole = false;
    };
    await Promise.all(Array.from({ length: STATES_AT_ONCE }, sender));
    return isWhole;
  }

  async #sendUntilTaken(
    one: SharedActor,
    isOver: () => boolean,
    failed: (ref: string, error: unknown) => void,
  ): Promise<boolean> {
    const { clock } = this.#options.services;
    while (!isOver()) {
      try {
        await this.#sendNewest(one);
        return true;
      } catch (error) {
        failed(one.ref, error);
        if (isCoded(error, 'HF_CLUSTER_MESSAGE_SIZE')) return false;
        await passed(clock, AGAIN_MS);
      }
    }
    return false;
  }

  /** Sends an actor, and once more when it was changed on the way: who did not have it could not take that change. */
  async #sendNewest({ ref, tell }: SharedActor): Promise<void> {
    const { services, send } = this.#options;
    for (let sent: number | undefined; ; ) {
      const state = services.actors.snapshot(ref);
      if (!state) return;
      const { machine, version, value } = state;
      const known = contextOf(state);
      const context = tell ? tell({ value, context: known }) : known;
      if (changedBy(context) === sent) return;
      sent = changedBy(context);
      await send(ref, toPlain({ machine, version, value, context, at: services.clock.now() }, 'state'));
    }
  }

  /** An actor hears what another host knows of it, or begins with that; while the log has no room, it waits. @returns whether this host understands it */
  async take({ from, ref, state }: ArrivedState): Promise<boolean> {
    const { host, services } = this.#options;
    const { actors, logger, clock } = services;
    const definition = this.#shared().find(({ type }) => ref.startsWith(`${type}/`));
    if (from === host || !definition) return true;
    await actors.whenFree();
    try {
      const heard = sharedState.parse(state);
      const at = clock.now();
      const known = actors.snapshot(ref);
      const own = known && { value: known.value, context: contextOf(known) };
      const event = definition.hear(own, { ...heard, from, at, aheadMs: at - heard.at });
      if (event) actors.deliver(ref, event);
      return true;
    } catch (error) {
      logger.warn({ actor: ref, from, err: error }, 'cluster.state_not_understood');
      return false;
    }
  }

  #shared() {
    return this.#options.services
      .declarations()
      .actors.flatMap(({ type, hear, tell }) => (hear === undefined ? [] : [{ type, hear, tell }]));
  }
}

const contextOf = ({ context }: Readonly<ActorState>): JsonObject => (isObject(context) ? context : {});

/** The newest message to every host that changed an actor. */
const changedBy = ({ changed }: JsonObject): number => z.number().catch(0).parse(changed);
