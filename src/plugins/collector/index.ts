/**
 * The collector as Holdfast knows it: by which ingest keys producers are admitted, read from the effective config of an
 * OpenTelemetry collector that a UI manages, or made by ourselves where there is none (O8). `config/` reads the config
 * and says what is wrong with it, `keys/` judges what producers present.
 *
 * Imports core and bus; no other plugin.
 */
import { resolve } from 'node:path';
import { z } from 'zod';
import { IngestKeysToken } from '../../core/adapters/ingest-keys.ts';
import { SecretsStoreToken } from '../../core/adapters/secrets-store.ts';
import { definePlugin, type Services } from '../../core/plugin/index.ts';
import { KeyRing } from './keys/key-ring.ts';
import { OwnKey } from './keys/own-key.ts';
import { fileSource, type KeySource, ownSource } from './keys/source.ts';

export const collector = definePlugin({
  name: 'collector',
  options: z.strictObject({
    /** The collector's `effective.yaml`; without it Holdfast is its own collector. */
    effectiveConfig: z.string().min(1).optional(),
    lookEveryMs: z.int().min(20).max(60_000).default(1_000),
    /** Where the stack's keys lie in the secrets store. */
    secretsPath: z.string().min(1).max(200).default('observability'),
  }),
  env: { HOLDFAST_COLLECTOR_CONFIG: 'effectiveConfig' },
  wants: [SecretsStoreToken],
  provides: [IngestKeysToken],
  onFailure: 'continue',
  register(context, options) {
    let ring: KeyRing | undefined;
    let unwatch: (() => void) | undefined;
    context.provide(IngestKeysToken, () => {
      ring ??= new KeyRing(context.services.vault, context.services.clock);
      return ring;
    });
    context.onStart(async (signal) => {
      const { services } = context;
      const source = sourceOf(options, services.dataDir);
      ring ??= new KeyRing(services.vault, services.clock);
      const keys = ring;
      const read = () => {
        const { findings, ...found } = source.read();
        keys.accept(found);
        const fingerprints = keys.fingerprints;
        services.logger.info({ place: source.place, fingerprints }, 'ingest.keys_read');
        for (const { code, text } of findings)
          services.logger.warn({ finding: code, text }, 'collector.config');
      };
      read();
      unwatch = source.watch(read);
      keys.knowVestigial(await vestigialToken(services, options.secretsPath, signal));
    });
    context.onStop(() => unwatch?.());
  },
});

function sourceOf(
  { effectiveConfig, lookEveryMs }: { effectiveConfig?: string | undefined; lookEveryMs: number },
  dataDir: string,
): KeySource {
  return effectiveConfig === undefined
    ? ownSource(new OwnKey(dataDir))
    : fileSource(resolve(effectiveConfig), lookEveryMs);
}

/** Known only so that a producer that sends it hears which key it should send. */
async function vestigialToken(services: Services, path: string, signal: AbortSignal) {
  try {
    return await services.find(SecretsStoreToken)?.read(path, 'otel_ingest_token', signal);
  } catch {
    return undefined;
  }
}
