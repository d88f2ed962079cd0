import { z } from 'zod';
import { ClusterToken } from '../../../core/contracts/cluster.ts';
import { SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { RotationEvent } from '../../../machines/collector/key-rotation-rules.ts';
import type { ActiveKeys } from '../active-keys.ts';
import { CollectorError } from '../errors.ts';
import { INGEST_KEY_NAME } from '../key-source.ts';
import type { CollectorOptions } from '../options.ts';
import { rotationActor } from './actor.ts';
import { rotationView } from './view.ts';

export const ROTATION_PATH = '/collector/rotation';

/** A rotation waits for producers that were seen with the old key in this time before it, milliseconds. */
const RECENT_MS = 3_600_000;

const asked = z.strictObject({
  action: z.enum(['show', 'plan', 'rotate', 'resume', 'force', 'stored', 'external_done', 'abandon']),
  name: z.string().min(1).max(100).default(INGEST_KEY_NAME),
});

/** The operation behind `stack rotate-ingest-key`: it sends an event, and the machine decides. */
export function registerRotationControl(
  context: PluginContext,
  options: CollectorOptions,
  keys: () => ActiveKeys,
): void {
  context.control((surface) => {
    serveOperation(surface, ROTATION_PATH, asked, async ({ action, name }, { correlation, signal }) => {
      const { actors } = context.services;
      const rotation = () => actors.get(rotationActor, INGEST_KEY_NAME);
      if (action === 'plan') return { ...rotationView(rotation()), plan: await plan(signal) };
      const event = eventOf(action, name);
      if (event) await actors.send(rotationActor, INGEST_KEY_NAME, event, { correlation }).durable();
      const refused = rotation()?.context.refused;
      if (action === 'rotate' && refused !== undefined) {
        throw new CollectorError('HF_COLLECTOR_ROTATION', { reason: refused });
      }
      return { ...rotationView(rotation()), correlation };
    });
  });

  function eventOf(action: string, name: string): RotationEvent | undefined {
    const at = context.services.clock.now();
    switch (action) {
      case 'rotate':
        return { type: 'ROTATE', at, name, ...facts(at) };
      case 'resume':
        return { type: 'RESUME', at };
      case 'force':
        return { type: 'FORCE', at };
      case 'stored':
        return { type: 'STORED', at, place: 'by hand' };
      case 'external_done':
        return { type: 'EXTERNAL_DONE', at };
      case 'abandon':
        return { type: 'ABANDON', at };
      default:
        return undefined;
    }
  }

  /** What the machine needs to know to begin. */
  function facts(at: number) {
    const { ring, own } = keys();
    const [old] = ring.fingerprints;
    const recent = old === undefined ? [] : ring.sightings(old).filter((seen) => at - seen.at < RECENT_MS);
    return {
      maker: own ? ('own' as const) : options.ui?.tokenFile ? ('api' as const) : ('operator' as const),
      ...(old !== undefined && { old }),
      producers: recent.map((seen) => ({ producer: seen.producer, at: seen.at })),
      external: options.externalProducers,
      canForce: options.refresh !== undefined && context.services.find(ClusterToken) !== undefined,
      settings: options.rotation,
    };
  }

  async function plan(signal: AbortSignal) {
    const { source } = keys();
    const { settings, ...rest } = facts(context.services.clock.now());
    const store = context.services.find(SecretsStoreToken);
    const described = await store
      ?.describe?.(options.secretsPath, INGEST_KEY_NAME, signal)
      .catch(() => undefined);
    return {
      ...rest,
      source: source.place,
      store: described?.place ?? (store ? `${options.secretsPath}#${INGEST_KEY_NAME}` : 'none'),
      storeIsWritable: store?.write !== undefined,
      refreshMinutes: settings.refreshMs / 60_000,
      overlapMinutes: settings.overlapMs / 60_000,
    };
  }
}
