import { SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { StartedCollector } from '../active-keys.ts';
import { INGEST_KEY_NAME } from '../key-source.ts';
import type { CollectorOptions } from '../options.ts';
import { ingestKeyActor, ingestKeyChanged, SharedKey } from '../shared-key.ts';

/** Every host takes the same changes in the same order. */
export function registerSharedKey(
  context: PluginContext<StartedCollector>,
  { secretsPath }: CollectorOptions,
): void {
  context.actor(ingestKeyActor);
  context.route(
    ingestKeyChanged,
    ingestKeyActor,
    ({ payload, order }) =>
      order === undefined ? [] : [{ key: INGEST_KEY_NAME, event: { ...payload, order } }],
    { everyHost: true },
  );
  // A store may be a folder of each host: where one has the key before, it gets this one. The rotation stores it elsewhere.
  context.effect<{ from: string; to: string }>(
    'collector.store_shared_key',
    async ({ from, to }, { signal }, { keys: { own }, services: { find } }) => {
      const store = find(SecretsStoreToken);
      if (!(own instanceof SharedKey) || !store?.write) return;
      const stored = await store.read(secretsPath, INGEST_KEY_NAME, signal).catch(() => undefined);
      if (stored === own.derive(from))
        await store.write(secretsPath, INGEST_KEY_NAME, own.derive(to), signal);
    },
    { onRecovery: 'retry', adapter: SecretsStoreToken.name },
  );
}
