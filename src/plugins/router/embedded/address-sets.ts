import { z } from 'zod';
import { defineTopic, type Topic } from '../../../bus/topic.ts';
import { alertRaised } from '../../../core/contracts/alerts.ts';
import { type NetworkConfig, routerChannels } from '../../../core/contracts/router.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../../core/kernel/actors/route.ts';
import { actorRef } from '../../../core/kernel/ids.ts';
import { type Json, jsonEqual } from '../../../core/kernel/json.ts';
import { delayOf, type LogRecord } from '../../../core/kernel/log/record.ts';
import {
  type AddressSetsContext,
  type AddressSetsEvent,
  addressSets as machine,
  type PopulateParams,
} from '../../../machines/router/address-sets.ts';
import { SETS_PATH } from '../commands/target.ts';
import { collisionText, prefixesBySet, type SetCollision, setCollisions } from '../config/networks.ts';
import type { EmbeddedRouter } from './embedded-router.ts';

/** The packet filter's address sets; its one key is `box`. */
const SETS_ACTOR = 'router.address_sets';
const SETS_KEY = 'box';

const changed = z.object({ sets: z.record(z.string(), z.array(z.string())) });

const addressesChanged: Topic<z.infer<typeof changed>> = defineTopic(
  'router.addresses_changed',
  changed,
  "The networks' addresses ask for other address sets than before.",
);

/** Registers the address sets (R21): their actor, their topic, and filling them as an effect. */
export function registerAddressSets(context: PluginContext, delayMs: number): void {
  context.actor(
    defineActor({
      type: SETS_ACTOR,
      machine,
      version: 1,
      input: () => ({ delayMs }),
      describe: describeSetsRecord,
    }),
  );
  context.route(
    defineRoute(addressesChanged, SETS_ACTOR, ({ payload }) => [
      { key: SETS_KEY, event: { type: 'ADDRESSES', ...payload } },
    ]),
  );
  context.effect<PopulateParams>(
    'router.populate_sets',
    ({ sets }) => {
      // The embedded box has no packet filter: the actor's own state is what `router explain` asks.
      const { clock, logger } = context.services;
      logger.info({ sets: Object.keys(sets).length }, 'router.sets_populated');
      return { type: 'POPULATED', at: clock.now(), sets };
    },
    { onRecovery: 'retry', adapter: 'packet filter' },
  );
}

/**
 * Tells the sets' actor what the networks' addresses are now, delegated ones included, when that is news to it. Two
 * networks of one set name share the set.
 */
export async function tellAddresses(
  router: EmbeddedRouter,
  { bus, actors }: Services,
  story?: { readonly correlation: string; readonly cause: number },
): Promise<void> {
  const { config, held } = await router.addresses();
  const sets = Object.fromEntries(prefixesBySet(config, (intf) => held.get(intf)));
  const known = actors.snapshot(actorRef(SETS_ACTOR, SETS_KEY))?.context as AddressSetsContext | undefined;
  if (jsonEqual(known?.wanted ?? {}, sets)) return;
  bus.publish(addressesChanged, { sets }, story);
}

function describeSetsRecord(record: LogRecord): string | undefined {
  const event = record.event as unknown as AddressSetsEvent;
  if (delayOf(record.event.type) !== undefined) return 'fills the sets';
  if (event.type === 'ADDRESSES')
    return `addresses changed, ${Object.keys(event.sets).length} sets are to follow`;
  return event.type === 'POPULATED' ? `${Object.keys(event.sets).length} sets are filled` : undefined;
}

const OWNER = 'router';

/**
 * Reports networks whose address sets share a name (R34): on the health page, and as an alert when one comes up.
 * `holdfast doctor` and `router legs` read the config for themselves.
 *
 * @param active reads the config in force
 */
export function watchCollisions(context: PluginContext, active: () => Promise<NetworkConfig>): void {
  let known: readonly SetCollision[] = [];
  const look = async (): Promise<void> => {
    const { bus, logger } = context.services;
    try {
      const found = setCollisions(await active());
      for (const collision of found) {
        if (known.some(({ name }) => name === collision.name)) continue;
        const text = `${collisionText(collision)}. Give one of the networks another uuid.`;
        bus.publish(alertRaised, {
          name: 'router.set_collision',
          severity: 'warning',
          text,
          labels: { set: collision.name },
        });
      }
      known = found;
    } catch (error) {
      logger.warn({ err: error }, 'router.collisions_unread');
    }
  };
  context.onStart(async () => {
    const { bus } = context.services;
    bus.subscribe(routerChannels.changeApplied, OWNER, () => void look());
    await look();
  });
  context.health('addressSets', () =>
    known.length > 0
      ? ({ ok: false, reason: known.map(collisionText).join('; '), collisions: known } as unknown as Json)
      : undefined,
  );
}

/** Serves what the address sets hold to `router explain`. */
export function registerSetsControl(context: PluginContext): void {
  context.control((surface) => {
    surface.post(SETS_PATH, async () => {
      const { actors } = context.services;
      const known = actors.snapshot(actorRef(SETS_ACTOR, SETS_KEY))?.context as
        | AddressSetsContext
        | undefined;
      return { sets: known?.populated ?? {}, wanted: known?.wanted ?? {} };
    });
  });
}
