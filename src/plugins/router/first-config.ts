import type { ConfigStore } from '../../core/contracts/config-store.ts';
import type { NetworkConfig } from '../../core/contracts/router.ts';
import { CONFIG_ACTOR } from '../../core/contracts/router-transaction.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { ConfigVersion, TransactionContext } from '../../machines/router/config-shapes.ts';
import example from './example-network-config.json' with { type: 'json' };
import type { SealedConfigs } from './sealed-configs.ts';

/** Where the config that is served came from. */
export type ConfigOrigin = 'store' | 'log' | 'example';

/**
 * Gives an empty store its first config: what the log last knew to be active, when the store's file was lost, else
 * the example. A store that held a transaction, too, has lost it or lost what it is about: it gets what a revert
 * restores, so that nothing uncommitted stays without a deadline.
 */
export async function ensureConfig(
  store: ConfigStore,
  configs: SealedConfigs,
  { actors, clock }: Pick<Services, 'actors' | 'clock'>,
): Promise<ConfigOrigin> {
  if (await store.active()) return 'store';
  const context = actors.snapshot(CONFIG_ACTOR)?.context as Partial<TransactionContext> | undefined;
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
    // It may still be held there, and refuses whatever is not its own.
    ...(pending && { transaction: { transID: pending.transID, windowMs: 0 } }),
  });
  // Somebody else filled it in between: theirs is the config then.
  if (!saved) return 'store';
  return kept ? 'log' : 'example';
}

/** A body that was shredded is as gone as one that was dropped. */
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
