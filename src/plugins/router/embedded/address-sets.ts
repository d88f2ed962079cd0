/**
 * The packet filter's address sets beside the config: the actor `router.address_sets/default` decides when they follow the
 * networks' addresses (R21), and networks whose sets share a name are reported (R34).
 */
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { alertRaised } from '../../../core/contracts/alerts.ts';
import { routerChannels } from '../../../core/contracts/router.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { type JsonObject, jsonEqual } from '../../../core/kernel/json.ts';
import { addressSets, type PopulateParams, type SetPrefixes } from '../../../machines/router/address-sets.ts';
import { SETS_PATH } from '../commands/target.ts';
import { collisionText, prefixesBySet, type SetCollision, setCollisions } from '../config/networks.ts';
import { fillSets, heldPrefixes, readSets, type SetTool } from '../host/set-tools.ts';
import { describeSetsRecord } from '../words.ts';
import type { EmbeddedRouter, RouterAccess } from './embedded-router.ts';

export const setsActor = defineActor({
  type: 'router.address_sets',
  machine: addressSets,
  version: 1,
  describe: describeSetsRecord,
});
export const SETS_KEY = 'default';

const addressesChanged = defineTopic(
  'router.addresses_changed',
  z.object({ sets: z.record(z.string(), z.array(z.string())) }),
  "The networks' addresses ask for other address sets than before.",
);

/** What the sets of the kernel hold: a machine that started anew has lost them, and others may change them. */
export const setsRead = defineTopic(
  'router.sets_read',
  z.object({ sets: z.record(z.string(), z.array(z.string())) }),
  'The address sets of the kernel were read, at the start or after others changed them.',
);

/** The sets of a real packet filter. */
export interface PacketFilter {
  readonly tool: SetTool;
  readonly namespace: string | undefined;
}

/**
 * Registers the actor, its route, filling the sets as an effect, and what `router explain` asks for.
 *
 * @param delayMs from a change of addresses until the sets follow, milliseconds
 */
export function registerAddressSets(
  context: PluginContext<
    RouterAccess & { readonly collisions: CollisionWatch; readonly packetFilter: PacketFilter | undefined }
  >,
  delayMs: number,
): void {
  context.actor({ ...setsActor, input: () => ({ delayMs }) });
  context.route(addressesChanged, setsActor, ({ payload }) => [
    { key: SETS_KEY, event: { type: 'ADDRESSES', ...payload } },
  ]);
  context.route(setsRead, setsActor, ({ payload }) => [
    { key: SETS_KEY, event: { type: 'READ', ...payload } },
  ]);
  context.effect<PopulateParams>(
    'router.populate_sets',
    async ({ sets }, { signal }, { packetFilter, services: { clock, logger } }) => {
      const tool = packetFilter?.tool ?? 'none';
      // Without a packet filter the sets are the actor's own state, which `router explain` reads.
      const held = packetFilter ? await filled(packetFilter, sets, signal) : sets;
      logger.info({ sets: Object.keys(sets).length, tool }, 'router.sets_populated');
      return { type: 'POPULATED', at: clock.now(), sets: held };
    },
    { onRecovery: 'retry', adapter: 'packet filter' },
  );
  context.control((surface, { packetFilter, services: { actors } }) => {
    surface.post(SETS_PATH, async () => {
      const context = actors.get(setsActor, SETS_KEY)?.context;
      const { populated: sets = {}, wanted = {} } = context ?? {};
      return { sets, wanted, tool: packetFilter?.tool ?? 'model' };
    });
  });
  context.health('packetFilter', ({ packetFilter, services: { actors } }) => {
    const refusal = actors.get(setsActor, SETS_KEY)?.context.refusal;
    if (refusal !== undefined) return { ok: false, reason: `the address sets are not filled: ${refusal}` };
    return packetFilter && { tool: packetFilter.tool };
  });
  context.health('addressSets', ({ collisions }) => collisions.report());
}

/** Fills the sets and reads them again. @returns those of the prefixes that they hold */
async function filled(
  { tool, namespace }: PacketFilter,
  sets: SetPrefixes,
  signal: AbortSignal,
): Promise<SetPrefixes> {
  await fillSets(tool, sets, { namespace, signal });
  return heldPrefixes(sets, await readSets(tool, { namespace, signal }));
}

/** Publishes what the kernel's sets hold. What keeps it from being read keeps them from being filled, and is reported there. */
export async function publishSets(
  { tool, namespace }: PacketFilter,
  { bus, logger }: Pick<Services, 'bus' | 'logger'>,
): Promise<void> {
  try {
    bus.publish(setsRead, { sets: withoutEmpty(await readSets(tool, { namespace })) });
  } catch (error) {
    logger.warn({ err: error }, 'router.sets_unread');
    bus.publish(setsRead, { sets: {} });
  }
}

/** A set without a prefix may just as well not be there. */
export function withoutEmpty(sets: SetPrefixes): Record<string, string[]> {
  const filled = Object.entries(sets).filter(([, prefixes]) => prefixes.length > 0);
  return Object.fromEntries(filled.map(([name, prefixes]) => [name, [...prefixes]]));
}

/** Publishes which prefixes the sets must hold now, delegated ones included, when that differs from what is known. */
export async function publishAddresses(
  router: EmbeddedRouter,
  { bus, actors }: Pick<Services, 'bus' | 'actors'>,
  meta?: { readonly correlation: string; readonly cause: number },
): Promise<void> {
  const { config, addresses } = await router.addresses();
  const sets = Object.fromEntries(prefixesBySet(config, (intf) => addresses.get(intf)));
  const wanted = actors.get(setsActor, SETS_KEY)?.context.wanted ?? {};
  if (!jsonEqual(wanted, sets)) bus.publish(addressesChanged, { sets }, meta);
}

/**
 * Watches for networks whose address sets share a name: an alert when one comes up, and a fact of the health page as
 * long as it lasts. `holdfast doctor` and `router legs` read the config for themselves.
 */
export class CollisionWatch {
  #collisions: readonly SetCollision[] = [];

  /** Checks now and after every change. */
  async start(router: EmbeddedRouter, { bus, logger }: Pick<Services, 'bus' | 'logger'>): Promise<void> {
    const check = async (): Promise<void> => {
      try {
        const found = setCollisions(await router.servedConfig());
        for (const collision of found) {
          if (this.#collisions.some(({ name }) => name === collision.name)) continue;
          bus.publish(alertRaised, {
            name: 'router.set_collision',
            severity: 'warning',
            text: `${collisionText(collision)}. Give one of the networks another uuid.`,
            labels: { set: collision.name },
          });
        }
        this.#collisions = found;
      } catch (error) {
        logger.warn({ err: error }, 'router.collisions_unread');
      }
    };
    bus.subscribe(routerChannels.changeApplied, 'router', () => void check());
    await check();
  }

  report(): JsonObject | undefined {
    if (this.#collisions.length === 0) return undefined;
    const collisions = this.#collisions.map(({ name, networks }) => ({
      name,
      networks: networks.map((network) => ({ ...network })),
    }));
    return { ok: false, reason: this.#collisions.map(collisionText).join('; '), collisions };
  }
}
