/**
 * The collector: holds the ingest keys that admit producers, and rotates them (O9). The keys are read from the
 * effective config of an OpenTelemetry collector that a UI manages, or made here where there is none (O8).
 * `effective-config.ts` reads the config and says what is wrong with it, `key-ring.ts` compares what producers present
 * with the keys,
 * `rotation/` carries out what `machines/collector/key-rotation.ts` decides, `run-probe.ts` sends a span through it all.
 */

import { ClusterToken } from '../../core/contracts/cluster.ts';
import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { IngestKeysToken } from '../../core/contracts/ingest-keys.ts';
import { KubernetesToken } from '../../core/contracts/kubernetes.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { counted } from '../../core/host/terminal.ts';
import { openKeys } from './active-keys.ts';
import { collectorChecks } from './checks.ts';
import { CollectorError } from './errors.ts';
import { registerFindings, reportFindings } from './findings.ts';
import { INGEST_KEY_NAME } from './key-source.ts';
import { KeysEverywhere } from './keys-everywhere.ts';
import { collectorOptions } from './options.ts';
import { registerParity } from './parity-command.ts';
import { registerProbe } from './probe.ts';
import { registerRotationActor, rotationActor } from './rotation/actor.ts';
import { adoptCommand } from './rotation/adopt-command.ts';
import { rotateCommand } from './rotation/command.ts';
import { registerRotationControl } from './rotation/control.ts';
import { registerRotationEffects } from './rotation/effects.ts';
import { registerSharedKey } from './rotation/every-host.ts';
import { registerSecrets } from './secrets.ts';
import { registerStackChecks } from './stack/checks.ts';

/**
 * The plugin `collector`: ingest keys and their rotation, a probe through the pipeline, the keys of the stack.
 *
 * @public
 */
export const collector = definePlugin({
  name: 'collector',
  about: {
    area: 'Telemetry stack',
    what: 'ingest keys and their rotation, a probe through the pipeline, the keys of the stack',
    docs: 'stack.md',
  },
  options: collectorOptions,
  errors: CollectorError,
  env: { HOLDFAST_COLLECTOR_CONFIG: 'effectiveConfig', HOLDFAST_UI_URL: 'ui.url' },
  variables: {
    HOLDFAST_COLLECTOR_CONFIG:
      'Effective config of a collector, whose ingest keys are then taken; the file is watched.',
    HOLDFAST_UI_URL: 'UI of the telemetry stack, by which `doctor stack` checks its document database.',
  },
  wants: [SecretsStoreToken, KubernetesToken, ColumnarDatabaseToken, ClusterToken],
  provides: [IngestKeysToken],
  onFailure: 'continue',
  async start(services, options, signal) {
    const keys = await openKeys(services, options, signal);
    reportFindings(services, keys.source.place, keys.reading.findings);
    const old = services.actors.get(rotationActor, INGEST_KEY_NAME)?.context.old;
    if (old !== undefined) keys.ring.watchRetired([old]);
    keys.ring.setLegacyToken(await legacyToken(services, options.secretsPath, signal));
    const others = new KeysEverywhere(keys.ring, services.clock, services.find(ClusterToken));
    return { services, keys, others, unwatch: keys.source.watch(() => keys.reload()) };
  },
  register(context, options) {
    context.provide(IngestKeysToken, ({ keys }) => keys.ring);
    registerFindings(context);
    registerSharedKey(context, options);
    registerRotationActor(context);
    registerRotationEffects(context, options);
    registerRotationControl(context, options);
    context.command(rotateCommand);
    context.command(adoptCommand);
    registerProbe(context);
    registerSecrets(context, options);
    for (const check of collectorChecks(options)) context.check(check);
    registerParity(context, options);
    registerStackChecks(context, options);
    context.health('collector', ({ keys: { source, ring, reading } }) => {
      const [finding] = reading.findings;
      const from = source.kind === 'own' ? `of Holdfast's own, in ${source.place}` : `from ${source.place}`;
      return {
        text: `${counted(ring.fingerprints.length, 'ingest key')} ${from}${finding ? `; ${finding.text}` : ''}`,
        ...(finding && { ok: false, reason: finding.text }),
        ...{ source: source.kind, place: source.place, keys: [...ring.fingerprints] },
      };
    });
    context.onStop(({ unwatch }) => unwatch());
  },
});

/** The old token `otel_ingest_token` never admitted anybody; the answer to a producer that sends it names the key to use. */
async function legacyToken(services: Services, path: string, signal: AbortSignal) {
  try {
    return await services.find(SecretsStoreToken)?.read(path, 'otel_ingest_token', signal);
  } catch {
    return undefined;
  }
}
