import { z } from 'zod';
import { ClusterToken } from '../../../core/contracts/cluster.ts';
import { SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { actorRef } from '../../../core/kernel/ids.ts';
import type { LogEvent } from '../../../core/kernel/log/record.ts';
import type { RotationContext, RotationEvent } from '../../../machines/collector/key-rotation-rules.ts';
import { CollectorError } from '../errors.ts';
import { INGEST_KEY_NAME } from '../key-source.ts';
import type { CollectorOptions } from '../options.ts';
import type { CollectorParts } from '../parts.ts';
import { rotationView } from './view.ts';

export const ROTATION_ACTOR = 'collector.key_rotation';
export const ROTATION = actorRef(ROTATION_ACTOR, INGEST_KEY_NAME);
export const ROTATION_PATH = '/collector/rotation';

/** Who was seen with the old key so long before a rotation is waited for, milliseconds. */
const RECENT_MS = 3_600_000;

const asked = z.strictObject({
  action: z.enum(['show', 'plan', 'rotate', 'resume', 'force', 'stored', 'external_done', 'abandon']),
  name: z.string().min(1).max(100).default(INGEST_KEY_NAME),
});

/** What `stack rotate-ingest-key` posts to: it only sends the event, the machine decides. */
export function registerRotationControl(
  context: PluginContext,
  options: CollectorOptions,
  parts: () => CollectorParts,
): void {
  context.control((surface) => {
    serveOperation(surface, ROTATION_PATH, asked, async ({ action, name }, { correlation, signal }) => {
      const { actors } = context.services;
      if (action === 'plan') return { ...rotationView(actors.snapshot(ROTATION)), plan: await plan(signal) };
      const event = eventOf(action, name);
      if (event) await actors.send(ROTATION, event as unknown as LogEvent, { correlation }).durable();
      const state = actors.snapshot(ROTATION);
      const refused = (state?.context as RotationContext | undefined)?.refused;
      if (action === 'rotate' && refused !== undefined) {
        throw new CollectorError('HF_COLLECTOR_ROTATION', { reason: refused });
      }
      return { ...rotationView(state), correlation };
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

  /** What the machine must know of the world to begin. */
  function facts(at: number) {
    const { ring, own } = parts();
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
    const { source } = parts();
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
