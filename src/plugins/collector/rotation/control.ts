import { z } from 'zod';
import { KubernetesToken } from '../../../core/contracts/kubernetes.ts';
import { type SecretsStore, SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { RotationEvent } from '../../../machines/collector/key-rotation-rules.ts';
import type { StartedCollector } from '../active-keys.ts';
import { CollectorError } from '../errors.ts';
import { INGEST_KEY_NAME } from '../key-source.ts';
import type { CollectorOptions } from '../options.ts';
import { isPlaceholder } from '../secrets.ts';
import { ROTATION, rotationActor } from './actor.ts';
import { type RotationPlan, rotationView } from './view.ts';

export const ROTATION_PATH = '/collector/rotation';

/** A rotation waits for producers that were seen with the old key in this time before it, milliseconds. */
const RECENT_MS = 3_600_000;

const rotationRequest = z.strictObject({
  action: z.enum([
    'show',
    'plan',
    'rotate',
    'resume',
    'force',
    'stored',
    'external_done',
    'abandon',
    'adopt',
  ]),
  replace: z.boolean().default(false),
  name: z.string().min(1).max(100).default(INGEST_KEY_NAME),
});

/** The operation behind `stack rotate-ingest-key`: it sends an event, and the machine decides. */
export function registerRotationControl(
  context: PluginContext<StartedCollector>,
  options: CollectorOptions,
): void {
  context.control((surface, started) => {
    const { actors, clock } = started.services;
    const rotation = () => actors.get(rotationActor, INGEST_KEY_NAME);
    serveOperation(
      surface,
      ROTATION_PATH,
      rotationRequest,
      async ({ action, name, replace }, { correlation, signal }) => {
        const at = clock.now();
        if (action === 'plan')
          return { ...rotationView(rotation()), plan: await planOf(started, options, at, signal) };
        const event =
          action === 'rotate'
            ? { type: 'ROTATE' as const, at, name, ...(await factsOf(started, options, at)) }
            : action === 'adopt'
              ? await adoptionOf(started, options, { at, replace }, signal)
              : eventOf(action, at);
        if (event) await actors.send(rotationActor, INGEST_KEY_NAME, event, { correlation }).durable();
        const refused = rotation()?.context.refused;
        if (action === 'rotate' && refused !== undefined) {
          throw new CollectorError('HF_COLLECTOR_ROTATION', { reason: refused });
        }
        if (action === 'adopt' && refused !== undefined) {
          throw new CollectorError('HF_COLLECTOR_ADOPTION', { reason: refused });
        }
        return { ...rotationView(rotation()), correlation };
      },
    );
  }, ROTATION);
}

function eventOf(
  action: Exclude<z.output<typeof rotationRequest>['action'], 'plan' | 'rotate' | 'adopt'>,
  at: number,
): RotationEvent | undefined {
  switch (action) {
    case 'show':
      return undefined;
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
  }
}

/** The facts that the machine needs to begin. */
async function factsOf(
  { keys: { ring, own }, others, services }: StartedCollector,
  options: CollectorOptions,
  at: number,
) {
  const [old] = ring.fingerprints;
  const seen = old === undefined ? [] : await others.sightings(old, true);
  const recent = seen.filter((one) => at - one.at < RECENT_MS);
  return {
    maker: own ? ('own' as const) : options.ui?.loginFile ? ('api' as const) : ('operator' as const),
    ...(old !== undefined && { old }),
    producers: recent,
    external: options.externalProducers,
    canForce: options.refresh !== undefined && services.find(KubernetesToken) !== undefined,
    settings: options.rotation,
  };
}

/**
 * The facts that the machine needs to store the key in use. A store that cannot be read does not count as empty.
 *
 * @throws what the secrets store throws
 */
async function adoptionOf(
  { keys, services }: StartedCollector,
  { secretsPath }: CollectorOptions,
  { at, replace }: { readonly at: number; readonly replace: boolean },
  signal: AbortSignal,
): Promise<RotationEvent> {
  await keys.refresh(signal);
  const { ring, reading } = keys;
  // The last good key may be an old one by now.
  const isReadable = reading.findings[0]?.code !== 'unreadable';
  const fingerprint =
    isReadable && reading.current !== undefined ? ring.fingerprintOf(reading.current) : undefined;
  const stored = await readStored(services.find(SecretsStoreToken), secretsPath, signal);
  return {
    ...{ type: 'ADOPT', at, replace },
    ...(fingerprint !== undefined && { fingerprint }),
    ...(stored !== undefined && { stored: ring.fingerprintOf(stored) }),
  };
}

/** @returns undefined where the store holds no ingest key, or only something that keeps its place */
async function readStored(store: SecretsStore | undefined, path: string, signal: AbortSignal) {
  try {
    const value = await store?.read(path, INGEST_KEY_NAME, signal);
    return value === undefined || isPlaceholder(value) ? undefined : value;
  } catch (error) {
    if (isCoded(error, 'HF_CONFIG_SECRET_MISSING')) return undefined;
    throw error;
  }
}

async function planOf(
  started: StartedCollector,
  options: CollectorOptions,
  at: number,
  signal: AbortSignal,
): Promise<RotationPlan> {
  const { settings, ...facts } = await factsOf(started, options, at);
  const { secretsPath } = options;
  const store = started.services.find(SecretsStoreToken);
  const described = await store?.describe?.(secretsPath, INGEST_KEY_NAME, signal).catch(() => undefined);
  return {
    ...facts,
    source: started.keys.source.place,
    store: described?.place ?? (store ? `${secretsPath}#${INGEST_KEY_NAME}` : 'none'),
    storeIsWritable: store?.write !== undefined,
    refreshMinutes: settings.refreshMs / 60_000,
    overlapMinutes: settings.overlapMs / 60_000,
  };
}
