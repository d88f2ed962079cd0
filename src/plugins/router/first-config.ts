import type { ConfigStore } from '../../core/adapters/config-store.ts';
import type { NetworkConfig } from '../../core/adapters/router.ts';
import { CONFIG_ACTOR } from '../../core/adapters/router-transaction.ts';
import { isCoded } from '../../core/errors/index.ts';
import type { Services } from '../../core/plugin/index.ts';
import type { TransactionContext } from '../../machines/config-transaction/shapes.ts';
import example from './example-network-config.json' with { type: 'json' };
import type { SealedConfigs } from './sealed-configs.ts';

/** Where the config that is served came from. */
export type ConfigOrigin = 'store' | 'log' | 'example';

/**
 * Gives an empty store its first config: what the log last knew to be active, when the store's file was lost, else
 * the example.
 */
export async function ensureConfig(
  store: ConfigStore,
  configs: SealedConfigs,
  { actors, clock }: Pick<Services, 'actors' | 'clock'>,
): Promise<ConfigOrigin> {
  if (await store.active()) return 'store';
  const context = actors.snapshot(CONFIG_ACTOR)?.context;
  const known = (context as Partial<TransactionContext> | undefined)?.active;
  const kept = known?.fingerprint ? opened(configs, known.fingerprint) : undefined;
  const config: NetworkConfig = kept && known ? { ...kept, ncid: known.ncid } : example;
  const saved = await store.save({
    expected: undefined,
    ncid: String(config.ncid),
    body: JSON.stringify(config),
    at: clock.now(),
    op: 'seed',
    who: 'holdfast',
    changed: [],
  });
  // Somebody else filled it in between: theirs is the config then.
  if (!saved) return 'store';
  return kept ? 'log' : 'example';
}

/** A body that was shredded is as gone as one that was dropped. */
function opened(configs: SealedConfigs, fingerprint: string): NetworkConfig | undefined {
  try {
    return configs.open(fingerprint);
  } catch (error) {
    if (isCoded(error, 'HF_LOG_SHREDDED')) return undefined;
    throw error;
  }
}
