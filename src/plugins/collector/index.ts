/**
 * The collector as Holdfast knows it: by which ingest keys producers are admitted, read from the effective config of an
 * OpenTelemetry collector that a UI manages, or made by ourselves where there is none (O8), and how they are rotated
 * (O9). `config/` reads the config and says what is wrong with it, `keys/` judges what producers present, `rotation/`
 * carries out what `machines/ingest-key-rotation.ts` decides, `probe/` sends a span through it all.
 *
 * Imports core, bus and its machine; no other plugin.
 */
import { resolve } from 'node:path';
import { ClusterToken } from '../../core/contracts/cluster.ts';
import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { IngestKeysToken } from '../../core/contracts/ingest-keys.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { definePlugin, type Services } from '../../core/host/plugin/definition.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import { isObject } from '../../core/kernel/json.ts';
import { ingestKeyRotation } from '../../machines/collector/key-rotation.ts';
import type { RotationContext } from '../../machines/collector/key-rotation-rules.ts';
import { collectorChecks } from './checks.ts';
import { configRead, findingsRead, producerMoved, registerFindings, toldOf } from './findings.ts';
import { KeyRing } from './key-ring.ts';
import { fileSource, INGEST_KEY_NAME, OwnKey, ownSource } from './key-source.ts';
import { type CollectorOptions, collectorOptions } from './options.ts';
import type { CollectorParts } from './parts.ts';
import { registerProbe } from './probe.ts';
import { rotateCommand } from './rotation/command.ts';
import { ROTATION, ROTATION_ACTOR, registerRotationControl } from './rotation/control.ts';
import { registerRotationEffects } from './rotation/effects.ts';
import { describeRotationRecord, isAwaited } from './rotation/view.ts';
import { registerSecrets } from './secrets.ts';

export const collector = definePlugin({
  name: 'collector',
  about: {
    area: 'Telemetry stack',
    what: 'ingest keys and their rotation, a probe through the pipeline, the keys of the stack',
    docs: 'stack.md',
  },
  options: collectorOptions,
  env: { HOLDFAST_COLLECTOR_CONFIG: 'effectiveConfig', HOLDFAST_UI_URL: 'ui.url' },
  wants: [SecretsStoreToken, ClusterToken, ColumnarDatabaseToken],
  provides: [IngestKeysToken],
  onFailure: 'continue',
  register(context, options) {
    let started: CollectorParts | undefined;
    const parts = (): CollectorParts => {
      started ??= open(context.services, options);
      return started;
    };
    context.provide(IngestKeysToken, () => parts().ring);
    context.actor(
      defineActor({
        type: ROTATION_ACTOR,
        machine: ingestKeyRotation,
        version: 1,
        describe: describeRotationRecord,
      }),
    );
    context.route(
      defineRoute(configRead, ROTATION_ACTOR, ({ payload }) => [
        { key: INGEST_KEY_NAME, event: { type: 'CONFIG_READ', ...payload } },
      ]),
    );
    context.route(
      defineRoute(producerMoved, ROTATION_ACTOR, ({ payload }) => [
        { key: INGEST_KEY_NAME, event: { type: 'MOVED', ...payload } },
      ]),
    );
    registerFindings(context);
    registerRotationEffects(context, options, parts);
    registerRotationControl(context, options, parts);
    context.command(rotateCommand);
    registerProbe(context, parts);
    registerSecrets(context, options, parts);
    for (const check of collectorChecks(options)) context.check(check);
    context.health('collector', () => {
      if (!started) return undefined;
      const { source, ring, reading } = started;
      const [finding] = reading.findings;
      return {
        ...(finding && { ok: false, reason: finding.text }),
        ...{ source: source.kind, place: source.place, keys: [...ring.fingerprints] },
      };
    });

    let unwatch: (() => void) | undefined;
    context.onStart(async (signal) => {
      const { ring, source, reading, reload } = parts();
      context.services.bus.publish(findingsRead, { findings: toldOf(source.place, reading.findings) });
      unwatch = source.watch(reload);
      const rotation = context.services.actors.snapshot(ROTATION)?.context;
      if (isObject(rotation) && typeof rotation.old === 'string') ring.watchRetired([rotation.old]);
      ring.knowVestigial(await vestigialToken(context.services, options.secretsPath, signal));
    });
    context.onStop(() => unwatch?.());
  },
});

function open(services: Services, options: CollectorOptions): CollectorParts {
  const { vault, clock, dataDir, logger, bus } = services;
  const { effectiveConfig, lookEveryMs } = options;
  const own = effectiveConfig === undefined ? new OwnKey(dataDir) : undefined;
  const source = own ? ownSource(own) : fileSource(resolve(effectiveConfig ?? ''), lookEveryMs);
  const rotation = () => services.actors.snapshot(ROTATION)?.context as RotationContext | undefined;
  const ring = new KeyRing(
    vault,
    clock,
    ({ fingerprint, producer, at }) => {
      const { step, fresh, producers = {} } = rotation() ?? {};
      if ((step !== 'refresh' && step !== 'external') || fresh !== fingerprint) return;
      const moved = Object.hasOwn(producers, producer) && producers[producer]?.fresh !== undefined;
      // Of those that are waited for alone: whoever has a key may call itself by ever new names.
      if (!moved && isAwaited(rotation(), producer)) bus.publish(producerMoved, { at, producer });
    },
    (producer) => isAwaited(rotation(), producer),
  );
  let reading = source.read();
  const take = () => {
    ring.accept(reading);
    logger.info({ place: source.place, fingerprints: ring.fingerprints }, 'ingest.keys_read');
    for (const { code, text } of reading.findings) logger.warn({ finding: code, text }, 'collector.config');
  };
  take();
  return {
    ring,
    source,
    own,
    get reading() {
      return reading;
    },
    reload() {
      const before = JSON.stringify([ring.fingerprints, reading.findings]);
      const [current] = ring.fingerprints;
      reading = source.read();
      ring.accept(reading);
      if (JSON.stringify([ring.fingerprints, reading.findings]) === before) return;
      take();
      bus.publish(findingsRead, { findings: toldOf(source.place, reading.findings) });
      const [fingerprint] = ring.fingerprints;
      if (fingerprint === current || reading.current === undefined) return;
      bus.publish(configRead, { at: clock.now(), fingerprint });
    },
  };
}

/** Known only so that a producer that sends it hears which key it should send. */
async function vestigialToken(services: Services, path: string, signal: AbortSignal) {
  try {
    return await services.find(SecretsStoreToken)?.read(path, 'otel_ingest_token', signal);
  } catch {
    return undefined;
  }
}
