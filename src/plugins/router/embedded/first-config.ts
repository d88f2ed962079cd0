import type { ConfigStore } from '../../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { ConfigVersion } from '../../../machines/router/config-shapes.ts';
import { CONFIG_KEY, configActor } from './config-actor.ts';
import example from './example-network-config.json' with { type: 'json' };
import type { SealedConfigs } from './sealed-configs.ts';

/** Where the config that is served came from. */
export type ConfigOrigin = 'store' | 'log' | 'example';

/**
 * Gives an empty store its first config: the one that was active by the log, when the store's file was lost, else
 * the example. A store that contained a transaction too has lost it or its config: it gets what a revert
 * restores, so that nothing uncommitted stays without a deadline.
 */
export async function ensureConfig(
  store: ConfigStore,
  configs: SealedConfigs,
  { actors, clock }: Pick<Services, 'actors' | 'clock'>,
): Promise<ConfigOrigin> {
  if (await store.active()) return 'store';
  const context = actors.get(configActor, CONFIG_KEY)?.context;
  const pending = store.commit ? context?.pending : undefined;
  const kept = (pending && keptOf(configs, pending.previous)) ?? keptOf(configs, context?.active);
  const config = kept ?? example;
  const saved = await store.save({
    expected: undefined,
    ncid: String(config.ncid),
    body: JSON.stringify(config),
    at: clock.now(),
    op: 'seed',
    who: 'holdfast',
    changed: [],
    // The transaction may still be stored there, and then refuses every other one.
    ...(pending && { transaction: { transID: pending.transID, windowMs: 0 } }),
  });
  // Another router filled it in between: its config counts.
  if (!saved) return 'store';
  return kept ? 'log' : 'example';
}

/** The config of a version, if the log still has it and it was not shredded. */
function keptOf(configs: SealedConfigs, version: ConfigVersion | undefined): NetworkConfig | undefined {
  if (!version?.fingerprint) return undefined;
  try {
    const body = configs.open(version.fingerprint);
    return body && { ...body, ncid: version.ncid };
  } catch (error) {
    if (isCoded(error, 'HF_LOG_SHREDDED')) return undefined;
    throw error;
  }
}
