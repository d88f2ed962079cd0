import { alertRaised } from '../../../core/adapters/alerts.ts';
import { type NetworkConfig, routerChannels } from '../../../core/adapters/router.ts';
import type { Json } from '../../../core/json.ts';
import type { CheckContext, CheckResult, PluginContext } from '../../../core/plugin/index.ts';
import { collisionText, type SetCollision, setCollisions } from './address-sets.ts';

const FACT = 'addressSets';
const OWNER = 'router';

/**
 * Reports networks whose address sets share a name (R34): on the health page, to `holdfast doctor`, and as an alert
 * when one comes up.
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
  context.health(FACT, () => (known.length > 0 ? ({ collisions: known } as unknown as Json) : undefined));
  context.check({ name: 'router.address_sets', run: checkCollisions });
}

function checkCollisions({ running }: CheckContext): CheckResult {
  const lookedAt = 'names of the address sets';
  if (!running)
    return {
      state: 'warn',
      lookedAt,
      found: 'nothing runs here that could tell',
      mend: 'Run `holdfast router legs`, which reads the store.',
    };
  const fact = running.facts[FACT] as { collisions?: readonly SetCollision[] } | undefined;
  const collisions = fact?.collisions ?? [];
  if (collisions.length === 0) return { state: 'ok', lookedAt, found: 'every network has a set of its own' };
  const mend = 'Give one of the networks another uuid (`interface.<kind>.<name>.meta.uuid`).';
  return { state: 'fail', lookedAt, found: collisions.map(collisionText).join('; '), mend };
}
