/**
 * Which ingest key is where: the effective config, the secrets store, the synced Secret, the running pods and the external
 * producers, by fingerprints. A key is `same` only where it was read; what could not be read is `unknown`, with the reason.
 */
import { type KubernetesApi, KubernetesToken } from '../../core/contracts/kubernetes.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { StartedCollector } from './active-keys.ts';
import {
  type Found,
  listWorkloadPods,
  readCollectorPods,
  readPodVariable,
  readSyncedSecret,
  type WorkloadPod,
} from './cluster-keys.ts';
import type { EffectiveConfig } from './effective-config.ts';
import { INGEST_KEY_NAME } from './key-source.ts';
import type { CollectorOptions } from './options.ts';

/** One place that contains the ingest key, or should. */
export interface ParityRow {
  readonly what: 'effective config' | 'secrets store' | 'synced Secret' | 'running pod' | 'external producer';
  readonly place: string;
  /** `reference`: what the collector accepts, with which all others are compared. */
  readonly state: 'reference' | 'same' | 'differs' | 'missing' | 'unknown';
  readonly fingerprint?: string;
  /** Set where the key may be absent. */
  readonly isOptional?: true;
  /** Why it is missing or unknown, or further facts. */
  readonly reason?: string;
}

/** The findings about a place before the comparison. */
interface Place {
  readonly what: ParityRow['what'];
  readonly place: string;
  readonly found: Found | { readonly kind: 'fingerprint'; readonly fingerprint: string };
  readonly note?: string | undefined;
  readonly isOptional?: true;
}

/** A producer that was silent for longer may have another key by now, milliseconds. */
const RECENT_MS = 3_600_000;
const NO_CLUSTER = unknown('no cluster is configured (HOLDFAST_KUBECONFIG)');

/** @throws only errors without a code, which are faults of Holdfast itself */
export async function readParity(
  started: StartedCollector,
  options: CollectorOptions,
  signal: AbortSignal,
): Promise<readonly ParityRow[]> {
  const { keys, services } = started;
  const cluster = services.find(KubernetesToken);
  await keys.refresh(signal);
  const [configs, store, secret, pods] = await Promise.all([
    configPlaces(started, options, cluster, signal),
    storePlace(started, options, signal),
    secretPlace(options, cluster, signal),
    podPlaces(options, cluster, signal),
  ]);
  const [first, ...others] = configs;
  const reference = first && fingerprintOf(first, started);
  const rest = [...others, store, ...secret, ...pods, ...externalPlaces(started, options)];
  return [
    ...(first ? [referenceRow(first, reference)] : []),
    ...rest.map((place) => rowOf(place, fingerprintOf(place, started), reference)),
  ];
}

function fingerprintOf({ found }: Place, { keys }: StartedCollector): string | undefined {
  if (found.kind === 'fingerprint') return found.fingerprint;
  return found.kind === 'value' ? keys.ring.fingerprintOf(found.value) : undefined;
}

function referenceRow({ what, place, found }: Place, fingerprint: string | undefined): ParityRow {
  if (fingerprint !== undefined) return { what, place, state: 'reference', fingerprint };
  const reason = 'reason' in found ? found.reason : '';
  return { what, place, state: found.kind === 'missing' ? 'missing' : 'unknown', reason };
}

function rowOf(
  { what, place, found, note, isOptional }: Place,
  fingerprint: string | undefined,
  reference: string | undefined,
): ParityRow {
  if (fingerprint === undefined) {
    const reason = 'reason' in found ? found.reason : '';
    const state = found.kind === 'missing' ? 'missing' : 'unknown';
    const text = note === undefined ? reason : `${reason}; ${note}`;
    return { what, place, state, reason: text, ...(isOptional && { isOptional }) };
  }
  if (reference === undefined) {
    const reason = 'there is no key of the effective config to compare it with';
    return { what, place, state: 'unknown', fingerprint, reason };
  }
  const state = fingerprint === reference ? 'same' : 'differs';
  return { what, place, state, fingerprint, ...(note !== undefined && { reason: note }) };
}

/** The effective config; where it is in pods, that of each of them, because each has a copy of its own. */
async function configPlaces(
  { keys: { source, reading } }: StartedCollector,
  { collectorPods }: CollectorOptions,
  cluster: KubernetesApi | undefined,
  signal: AbortSignal,
): Promise<Place[]> {
  const what = 'effective config';
  const { place } = source;
  if (source.kind !== 'pods' || !collectorPods) {
    const isReadable = reading.findings[0]?.code !== 'unreadable';
    const { current, findings } = reading;
    return [{ what, place, found: foundIn({ ingestKey: isReadable ? current : undefined, findings }) }];
  }
  if (!cluster) return [{ what, place, found: NO_CLUSTER }];
  try {
    const pods = await readCollectorPods(cluster, collectorPods, signal);
    if (pods.length === 0) return [{ what, place, found: unknown('no such pod runs') }];
    return pods.map(({ pod, config }) => ({ what, place: `pod ${pod}`, found: foundIn(config) }));
  } catch (error) {
    return [{ what, place, found: unknownBy(error) }];
  }
}

function foundIn({ ingestKey, findings }: Pick<EffectiveConfig, 'ingestKey' | 'findings'>): Found {
  if (ingestKey !== undefined) return { kind: 'value', value: ingestKey };
  const [finding] = findings;
  const kind = finding?.code === 'unreadable' ? 'unknown' : 'missing';
  return { kind, reason: finding?.text ?? 'it holds no ingest key' };
}

async function storePlace(
  { services, keys: { own } }: StartedCollector,
  { secretsPath, refresh }: CollectorOptions,
  signal: AbortSignal,
): Promise<Place> {
  // A key that Holdfast made is in its own file; it must be in the store only for a secret-sync object.
  const isOptional = own !== undefined && refresh === undefined;
  const store = services.find(SecretsStoreToken);
  const place = `${secretsPath}#${INGEST_KEY_NAME}`;
  const row = (found: Found): Place => ({
    ...{ what: 'secrets store', place, found },
    ...(isOptional && { isOptional }),
  });
  if (!store) return row(unknown('no secrets store is configured'));
  try {
    return row({ kind: 'value', value: await store.read(secretsPath, INGEST_KEY_NAME, signal) });
  } catch (error) {
    if (!isCoded(error, 'HF_CONFIG_SECRET_MISSING')) return row(unknownBy(error));
    return row({ kind: 'missing', reason: 'it holds none: holdfast stack adopt-ingest-key' });
  }
}

async function secretPlace(
  { refresh, effectiveConfig, collectorPods }: CollectorOptions,
  cluster: KubernetesApi | undefined,
  signal: AbortSignal,
): Promise<Place[]> {
  // Without a cluster, and with Holdfast as its own collector, no Secret is expected.
  if (!refresh && !effectiveConfig && !collectorPods) return [];
  const name = refresh?.syncedSecret ? `${refresh.namespace}/${refresh.syncedSecret.name}` : '-';
  const { found } = await readSyncedSecret(cluster, refresh, signal);
  return [{ what: 'synced Secret', place: name, found }];
}

async function podPlaces(
  { refresh, effectiveConfig, collectorPods }: CollectorOptions,
  cluster: KubernetesApi | undefined,
  signal: AbortSignal,
): Promise<Place[]> {
  const what = 'running pod';
  const isNamed = refresh && refresh.deployments.length + refresh.daemonSets.length > 0;
  if (!isNamed) {
    if (!refresh && !effectiveConfig && !collectorPods) return [];
    const options = "the collector's options refresh.deployments and .daemonSets";
    return [{ what, place: '-', found: unknown(`no workload is named (${options})`) }];
  }
  if (!cluster) return [{ what, place: '-', found: NO_CLUSTER }];
  const pods = await listWorkloadPods(cluster, refresh, signal);
  return Promise.all(
    pods.map(async (pod): Promise<Place> => {
      if ('reason' in pod) return { what, place: pod.workload, found: unknown(pod.reason) };
      const place = `${pod.workload}, pod ${pod.name}`;
      if (!pod.isRunning) return { what, place, found: unknown('it does not run') };
      return {
        ...{ what, place, note: startOf(pod) },
        found: await readPodVariable(cluster, refresh, pod.name, signal),
      };
    }),
  );
}

function startOf({ startedAt }: WorkloadPod): string | undefined {
  return startedAt === undefined ? undefined : `started ${new Date(startedAt).toISOString()}`;
}

/** What our own receiver has seen of the external producers; those that send elsewhere are unknown. */
function externalPlaces(
  { keys: { ring }, services: { clock } }: StartedCollector,
  { externalProducers }: CollectorOptions,
): Place[] {
  return externalProducers.map((producer): Place => {
    const what = 'external producer';
    const newest = ring.newestSighting(producer);
    if (!newest) {
      const reason =
        'it was not seen at our receiver since the start: it sends elsewhere, or with no valid key';
      return { what, place: producer, found: unknown(reason) };
    }
    const note = `last seen ${new Date(newest.at).toISOString()}`;
    if (clock.now() - newest.at > RECENT_MS) {
      return { what, place: producer, found: unknown(`it sent nothing for an hour, ${note}`) };
    }
    return { what, place: producer, note, found: { kind: 'fingerprint', fingerprint: newest.fingerprint } };
  });
}

function unknown(reason: string): Found {
  return { kind: 'unknown', reason };
}

function unknownBy(error: unknown): Found {
  if (!isCoded(error)) throw error;
  return unknown(error.what.replace(/\.$/, ''));
}
