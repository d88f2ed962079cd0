import { setTimeout as sleep } from 'node:timers/promises';
import { ColumnarDatabaseToken } from '../../../core/contracts/columnar-database.ts';
import { type KubernetesApi, KubernetesToken } from '../../../core/contracts/kubernetes.ts';
import { SecretsError, SecretsStoreToken } from '../../../core/contracts/secrets-store.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { LogEvent } from '../../../core/kernel/log/record.ts';
import type { RotationEvent } from '../../../machines/collector/key-rotation-rules.ts';
import type { StartedCollector } from '../active-keys.ts';
import { type Refresh, readSyncedSecret } from '../cluster-keys.ts';
import { CollectorError } from '../errors.ts';
import { INGEST_KEY_NAME } from '../key-source.ts';
import type { CollectorOptions } from '../options.ts';
import { rotationActor } from './actor.ts';
import { checkRefresh, type Rotated } from './checks.ts';
import { regenerateInUi, stepsByHand } from './ui.ts';
import { isAwaited } from './view.ts';

/** How many producers are recorded besides the awaited ones. */
const MOST_OTHERS = 16;

/** How often and for how long a restart waits until the synced Secret has the new key, milliseconds. */
const LOOK_MS = 500;
const MOST_LOOKS = 20;

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
      const byHand = (why?: string) =>
        outcome({ type: 'BY_HAND', at: clock.now(), text: stepsByHand(ui?.url, why) });
      if (maker !== 'api' || ui?.loginFile === undefined) return byHand();
      // A second request would make a second key.
      if (recovered)
        return byHand('the process ended during the request to the UI, so a key may have been made');
      const refused = await regenerateInUi({ ...ui, loginFile: ui.loginFile }, signal);
      return refused === undefined ? outcome({ type: 'REGENERATED', at: clock.now() }) : byHand(refused);
    },
    { onRecovery: 'retry', adapter: 'UI' },
  );

  context.effect(
    'collector.read_config',
    async (_params, { signal }, { keys, services: { clock } }) => {
      await keys.refresh(signal);
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
    async ({ fresh }, { signal }, { keys: { ring, own }, others, services: { clock, find } }) => {
      const lacking = own ? await others.lacking(fresh, signal) : [];
      if (lacking.length > 0) throw new CollectorError('HF_COLLECTOR_HOSTS', { hosts: lacking.join(', ') });
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
    async ({ old, fresh }, _effect, { keys: { ring }, others: hosts, services: { actors, clock } }) => {
      ring.watchRetired([old]);
      const [seen, moved] = await Promise.all([hosts.sightings(old, true), hosts.sightings(fresh, false)]);
      const rotation = actors.get(rotationActor, INGEST_KEY_NAME)?.context;
      // A few others show that the new key is in use; many would leave no room for the awaited ones.
      const others = moved.filter(({ producer }) => !isAwaited(rotation, producer)).slice(-MOST_OTHERS);
      const awaited = moved.filter(({ producer }) => isAwaited(rotation, producer));
      return outcome({
        type: 'SIGHTINGS_READ',
        at: clock.now(),
        old: seen,
        fresh: [...awaited, ...others],
      });
    },
    { onRecovery: 'retry', adapter: 'OTLP receiver' },
  );

  context.effect<Rotated>(
    'collector.check_refresh',
    async (rotated, { signal }, { keys: { ring }, services: { clock, find } }) => {
      const surroundings = {
        cluster: find(KubernetesToken),
        database: find(ColumnarDatabaseToken),
        refresh,
        fingerprintOf: (value: string) => ring.fingerprintOf(value),
      };
      return outcome({
        type: 'CHECKED',
        checks: await checkRefresh(surroundings, rotated, signal),
        at: clock.now(),
      });
    },
    { onRecovery: 'retry', adapter: KubernetesToken.name },
  );

  context.effect(
    'collector.force_refresh',
    async (_params, { at, signal }, { keys: { ring }, services: { clock, find } }) => {
      const cluster = find(KubernetesToken);
      const isSynced = async () => {
        const { found } = await readSyncedSecret(cluster, refresh, signal);
        return found.kind === 'value' && ring.fingerprintOf(found.value) === ring.fingerprints[0];
      };
      const what = cluster && refresh ? await forceRefresh(cluster, refresh, { at, isSynced }, signal) : [];
      return outcome({ type: 'FORCED', at: clock.now(), what });
    },
    { onRecovery: 'retry', adapter: KubernetesToken.name },
  );

  context.effect<{ fresh: string }>(
    'collector.retire_key',
    async ({ fresh }, { signal }, { keys, services: { clock } }) => {
      // The old key is retired only while the new one is in force, so that one key always remains.
      if (keys.ring.fingerprints[0] === fresh) await keys.own?.retire(signal);
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

/**
 * Makes producers take up a new key now: the secret-sync object is annotated, so that it reads the secrets store, and workloads
 * that hold the old value in their environment are restarted.
 *
 * @param at when it was requested, epoch ms; a repetition after a crash has the same time, so nothing restarts twice
 * @param isSynced whether the synced Secret has the new key: a pod that restarts before that would read the old one
 * @returns what was done, for people
 * @throws HF_KUBERNETES_UNREACHABLE, HF_KUBERNETES_REFUSED
 */
async function forceRefresh(
  cluster: KubernetesApi,
  { namespace, secretSync, syncedSecret, deployments, daemonSets }: Refresh,
  { at, isSynced }: { readonly at: number; readonly isSynced: () => Promise<boolean> },
  signal: AbortSignal,
): Promise<string[]> {
  const done: string[] = [];
  if (secretSync) {
    const { apiVersion, kind, name, annotation } = secretSync;
    const patch = { metadata: { annotations: { [annotation]: String(at) } } };
    const { spec } = await cluster.patch({ apiVersion, kind }, name, namespace, patch, signal);
    const fixed = fetchedOnce(spec);
    done.push(
      `annotated ${kind} ${name}${fixed === undefined ? '' : `, which does not fetch again (${fixed})`}`,
    );
  }
  for (let looks = 0; syncedSecret && looks < MOST_LOOKS && !(await isSynced()); looks += 1) {
    await sleep(LOOK_MS, undefined, { signal });
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

/** Why External Secrets does not fetch again for an annotation; undefined when it does. */
export function fetchedOnce(spec: unknown): string | undefined {
  const { refreshPolicy, refreshInterval } = isObject(spec) ? spec : {};
  if (refreshPolicy === 'CreatedOnce') return 'refreshPolicy CreatedOnce';
  const isZero = typeof refreshInterval === 'string' && /^(?:0+|(?:0+(?:h|ms|m|s))+)$/.test(refreshInterval);
  return isZero && refreshPolicy !== 'OnChange' ? `refreshInterval ${refreshInterval}` : undefined;
}
