import { resolve } from 'node:path';
import { ClusterToken } from '../../core/contracts/cluster.ts';
import { KubernetesToken } from '../../core/contracts/kubernetes.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import { reportFindings } from './findings.ts';
import { KeyRing } from './key-ring.ts';
import {
  fileSource,
  INGEST_KEY_NAME,
  type KeyMaker,
  type KeySource,
  OwnKey,
  ownSource,
  podsSource,
  type Reading,
} from './key-source.ts';
import type { KeysEverywhere } from './keys-everywhere.ts';
import type { CollectorOptions } from './options.ts';
import { configRead, producerMoved, rotationActor } from './rotation/actor.ts';
import { isAwaited } from './rotation/view.ts';
import { SharedKey, sharedSource } from './shared-key.ts';

/** What the plugin's start makes. */
export interface StartedCollector {
  readonly services: Services;
  readonly keys: ActiveKeys;
  readonly others: KeysEverywhere;
}

/** How long a start waits for the cluster, milliseconds; after that the keys come with the next look. */
const START_MS = 5_000;

/** Reads the keys for the first time. @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID, HF_CONFIG_SECRET_FOLDER */
export async function openKeys(
  services: Services,
  options: CollectorOptions,
  signal: AbortSignal,
): Promise<ActiveKeys> {
  const { collectorPods } = options;
  const pods = collectorPods && podsSource(collectorPods, () => services.find(KubernetesToken));
  await pods?.refresh?.(AbortSignal.any([signal, AbortSignal.timeout(START_MS)]));
  return new ActiveKeys(services, options, pods);
}

/** The keys of a Holdfast that is its own collector: in a cluster the same on every host. */
function ownKeys(services: Services): { readonly source: KeySource; readonly own: KeyMaker } {
  const cluster = services.find(ClusterToken);
  if (cluster) {
    const shared = new SharedKey(services, cluster);
    return { source: sharedSource(shared, services.clock), own: shared };
  }
  const own = new OwnKey(services.dataDir);
  return { source: ownSource(own), own };
}

/** The keys in force: read from their source, again whenever that changes, and accepted by the ring. */
export class ActiveKeys {
  readonly ring: KeyRing;
  readonly source: KeySource;
  /** Set where Holdfast is the collector. */
  readonly own: KeyMaker | undefined;
  readonly #services: Services;
  #reading: Reading;

  /**
   * @param pods the source where the effective config is in pods; it was refreshed once
   * @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID, HF_CONFIG_SECRET_FOLDER of a key of our own
   */
  constructor(services: Services, { effectiveConfig, lookEveryMs }: CollectorOptions, pods?: KeySource) {
    this.#services = services;
    const file =
      effectiveConfig === undefined ? undefined : fileSource(resolve(effectiveConfig), lookEveryMs);
    const elsewhere = pods ?? file;
    const { source, own } = elsewhere ? { source: elsewhere, own: undefined } : ownKeys(services);
    this.own = own;
    this.source = source;
    this.ring = new KeyRing(
      services.vault,
      services.clock,
      ({ fingerprint, producer, at }) => this.#seenFirst(fingerprint, producer, at),
      (producer) => isAwaited(this.#rotation(), producer),
    );
    this.#reading = this.source.read();
    this.#accept();
  }

  /** The newest reading of the source. */
  get reading(): Reading {
    return this.#reading;
  }

  /** Has the source look again where that takes a call, then `reload`. */
  async refresh(signal: AbortSignal): Promise<void> {
    await this.source.refresh?.(signal);
    this.reload();
  }

  /** Reads the source again, and reports what has changed. */
  reload(): void {
    const { bus, clock } = this.#services;
    const before = this.ring.fingerprints;
    const findings = JSON.stringify(this.#reading.findings);
    this.#reading = this.source.read();
    this.ring.accept(this.#reading);
    const isSame = JSON.stringify(before) === JSON.stringify(this.ring.fingerprints);
    if (isSame && findings === JSON.stringify(this.#reading.findings)) return;
    this.#accept();
    reportFindings(this.#services, this.source.place, this.#reading.findings);
    const [fingerprint] = this.ring.fingerprints;
    if (fingerprint === undefined || fingerprint === before[0] || this.#reading.current === undefined) return;
    bus.publish(configRead, { at: clock.now(), fingerprint });
  }

  #accept(): void {
    const { logger } = this.#services;
    const { place } = this.source;
    this.ring.accept(this.#reading);
    logger.info({ place, fingerprints: this.ring.fingerprints }, 'collector.keys_read');
    for (const { code, text } of this.#reading.findings)
      logger.warn({ finding: code, text }, 'collector.config');
  }

  #rotation() {
    return this.#services.actors.get(rotationActor, INGEST_KEY_NAME)?.context;
  }

  /** Reports only producers that a rotation waits for, because a producer can send any number of names. */
  #seenFirst(fingerprint: string, producer: string, at: number): void {
    const rotation = this.#rotation();
    if (rotation?.step !== 'refresh' && rotation?.step !== 'external') return;
    if (rotation.fresh !== fingerprint || !isAwaited(rotation, producer)) return;
    const times = Object.hasOwn(rotation.producers, producer) ? rotation.producers[producer] : undefined;
    if (times?.fresh === undefined) this.#services.bus.publish(producerMoved, { at, producer });
  }
}
