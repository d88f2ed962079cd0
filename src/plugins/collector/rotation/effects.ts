import { type Cluster, ClusterToken } from '../../../core/contracts/cluster.ts';
import { SecretsError, SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import { HttpCallError, HttpClient } from '../../../core/host/http/client.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { LogEvent } from '../../../core/kernel/log/record.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import type { RotationEvent } from '../../../machines/collector/key-rotation-rules.ts';
import type { StartedCollector } from '../active-keys.ts';
import { CollectorError } from '../errors.ts';
import { INGEST_KEY_NAME } from '../key-source.ts';
import type { CollectorOptions } from '../options.ts';
import { rotationActor } from './actor.ts';
import { isAwaited } from './view.ts';

/** How many producers are recorded besides the awaited ones. */
const MOST_OTHERS = 16;
const IN_UI =
  'make a new key in the UI, Team Settings → API Keys → Regenerate; it is noticed by itself when the collector has it';

/** The effects of the rotation's machine. Each may run twice after a crash. */
export function registerRotationEffects(
  context: PluginContext<StartedCollector>,
  { ui, secretsPath, refresh }: CollectorOptions,
): void {
  context.effect<{ maker: string; old: string }>(
    'collector.regenerate_key',
    async ({ maker, old }, { signal, recovered }, { keys, services: { clock } }) => {
      const { ring, own } = keys;
      ring.watchRetired([old]);
      if (maker === 'own' && own) {
        if (ring.fingerprints[0] === old) own.regenerate();
        keys.reload();
        return outcome({ type: 'REGENERATED', at: clock.now() });
      }
      if (maker !== 'api' || ui?.tokenFile === undefined) {
        return outcome({ type: 'BY_HAND', at: clock.now(), text: IN_UI });
      }
      if (recovered) {
        // A second request would make a second key.
        const text = `the process ended during the request to the UI: if no new key is adopted, ${IN_UI}`;
        return outcome({ type: 'BY_HAND', at: clock.now(), text });
      }
      await regenerateInUi({ ...ui, tokenFile: ui.tokenFile }, signal);
      return outcome({ type: 'REGENERATED', at: clock.now() });
    },
    { onRecovery: 'retry', adapter: 'UI' },
  );

  context.effect(
    'collector.read_config',
    (_params, _effect, { keys, services: { clock } }) => {
      keys.reload();
      const [fingerprint] = keys.ring.fingerprints;
      return outcome({
        type: 'CONFIG_READ',
        at: clock.now(),
        ...(fingerprint !== undefined && { fingerprint }),
      });
    },
    { onRecovery: 'retry', adapter: 'collector config' },
  );

  context.effect<{ fresh: string }>(
    'collector.store_key',
    async ({ fresh }, { signal }, { keys: { ring, own }, services: { clock, find } }) => {
      const current = await ring.current();
      if (ring.fingerprintOf(current) !== fresh) {
        throw new CollectorError('HF_COLLECTOR_NO_KEY', { reason: 'the collector has another one by now' });
      }
      const store = find(SecretsStoreToken);
      const property = `${secretsPath}#${INGEST_KEY_NAME}`;
      if (store?.write) {
        await store.write(secretsPath, INGEST_KEY_NAME, current, signal);
        const kept = await store.read(secretsPath, INGEST_KEY_NAME, signal);
        if (kept !== current) throw new SecretsError('HF_SECRETS_CONFLICT', { place: property });
        return outcome({ type: 'STORED', at: clock.now(), place: property });
      }
      if (!store && own) return outcome({ type: 'STORED', at: clock.now(), place: own.file });
      const place = (await store?.describe?.(secretsPath, INGEST_KEY_NAME, signal))?.place;
      const where = own ? ` (it is in ${own.file})` : '';
      const text = place
        ? `the secrets store can only be read: put the new key${where} in ${place}, then add --stored`
        : `no secrets store is configured: put the new key${where} where your producers read it, then add --stored`;
      return outcome({ type: 'BY_HAND', at: clock.now(), text });
    },
    { onRecovery: 'retry', adapter: SecretsStoreToken.name },
  );

  context.effect<{ old: string; fresh: string }>(
    'collector.read_sightings',
    ({ old, fresh }, _effect, { keys: { ring }, services: { actors, clock } }) => {
      ring.watchRetired([old]);
      const rotation = actors.get(rotationActor, INGEST_KEY_NAME)?.context;
      const seen = (fingerprint: string) =>
        ring.sightings(fingerprint).map(({ producer, at }) => ({ producer, at }));
      const moved = seen(fresh);
      // A few others show that the new key is in use; many would leave no room for the awaited ones.
      const others = moved.filter(({ producer }) => !isAwaited(rotation, producer)).slice(-MOST_OTHERS);
      const awaited = moved.filter(({ producer }) => isAwaited(rotation, producer));
      return outcome({
        type: 'SIGHTINGS_READ',
        at: clock.now(),
        old: seen(old),
        fresh: [...awaited, ...others],
      });
    },
    { onRecovery: 'retry', adapter: 'OTLP receiver' },
  );

  context.effect(
    'collector.force_refresh',
    async (_params, { at, signal }, { services: { clock, find } }) => {
      const cluster = find(ClusterToken);
      const what = cluster && refresh ? await forceRefresh(cluster, refresh, at, signal) : [];
      return outcome({ type: 'FORCED', at: clock.now(), what });
    },
    { onRecovery: 'retry', adapter: ClusterToken.name },
  );

  context.effect<{ fresh: string }>(
    'collector.retire_key',
    ({ fresh }, _effect, { keys, services: { clock } }) => {
      // The old key is retired only while the new one is in force, so that one key always remains.
      if (keys.ring.fingerprints[0] === fresh) keys.own?.retire();
      keys.reload();
      return outcome({ type: 'RETIRED', at: clock.now() });
    },
    { onRecovery: 'retry' },
  );
}

/** Checks an outcome against the machine. */
function outcome(event: RotationEvent): LogEvent {
  return event;
}

/** The body of the answer holds the key, so it is not read. */
const http = new HttpClient({ timeoutMs: 10_000, answerLimit: 0, excess: 'cut', keepAlive: false });

/**
 * Requests a new ingest key from the UI's API. The key itself is then read from the collector's config, which proves that
 * the collector has adopted it.
 *
 * @throws HF_COLLECTOR_UI, HF_CONFIG_SECRET_*
 */
async function regenerateInUi(
  { url, tokenFile, regeneratePath }: { url: string; tokenFile: string; regeneratePath: string },
  signal: AbortSignal,
): Promise<void> {
  const authorization = `Bearer ${readTokenFile(tokenFile)}`;
  let status: number;
  try {
    const place = `${url.replace(/\/+$/, '')}${regeneratePath}`;
    const headers = { authorization, accept: 'application/json' };
    // The head of the answer decides: a body that stalls or breaks off must not fail the step, whose repetition makes another key.
    status = await http.stream(
      { method: 'PATCH', url: place, headers, signal },
      async (answer) => answer.status,
    );
  } catch (error) {
    if (!(error instanceof HttpCallError)) throw error;
    const { reason } = error;
    throw new CollectorError('HF_COLLECTOR_UI', { reason });
  }
  if (status >= 500) {
    const reason = `it answers ${status}, as it does while its document database is away`;
    throw new CollectorError('HF_COLLECTOR_UI', { reason });
  }
  if (status < 200 || status > 299)
    throw new CollectorError('HF_COLLECTOR_UI', { reason: `it answered ${status}` });
}

type Refresh = NonNullable<CollectorOptions['refresh']>;

/**
 * Makes producers take up a new key now: the secret-sync object is annotated, so that it reads the secrets store, and workloads
 * that hold the old value in their environment are restarted.
 *
 * @param at when it was requested, epoch ms; a repetition after a crash has the same time, so nothing restarts twice
 * @returns what was done, for people
 * @throws HF_CLUSTER_UNREACHABLE, HF_CLUSTER_REFUSED
 */
async function forceRefresh(
  cluster: Cluster,
  { namespace, secretSync, deployments, daemonSets }: Refresh,
  at: number,
  signal: AbortSignal,
): Promise<string[]> {
  const done: string[] = [];
  if (secretSync) {
    const { apiVersion, kind, name, annotation } = secretSync;
    const patch = { metadata: { annotations: { [annotation]: String(at) } } };
    await cluster.patch({ apiVersion, kind }, name, namespace, patch, signal);
    done.push(`annotated ${kind} ${name}`);
  }
  const restartedAt = new Date(at).toISOString();
  const restart = {
    spec: { template: { metadata: { annotations: { 'kubectl.kubernetes.io/restartedAt': restartedAt } } } },
  };
  const workloads = [
    ...deployments.map((name) => ({ kind: 'Deployment', name })),
    ...daemonSets.map((name) => ({ kind: 'DaemonSet', name })),
  ];
  for (const { kind, name } of workloads) {
    await cluster.patch({ apiVersion: 'apps/v1', kind }, name, namespace, restart, signal);
    done.push(`restarted ${kind} ${name}`);
  }
  return done;
}
