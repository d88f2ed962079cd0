import { alertRaised } from '../../../core/contracts/alerts.ts';
import { type NetworkConfig, routerChannels } from '../../../core/contracts/router.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { Json } from '../../../core/kernel/json.ts';
import { collisionText, type SetCollision, setCollisions } from './address-sets.ts';

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
