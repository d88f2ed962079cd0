import { createHmac, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { defineTopic } from '../../bus/topic.ts';
import type { Cluster } from '../../core/contracts/cluster.ts';
import type { Services } from '../../core/host/plugin/definition.ts';
import { readTokenFile } from '../../core/host/secrets/token-file.ts';
import { defineActor } from '../../core/kernel/actors/definition.ts';
import { createSecretFile, removeSecretFile, replaceSecretFile } from '../../core/kernel/secret-file.ts';
import {
  type IngestKeyContext,
  type IngestKeyEvent,
  ingestKey,
  isNews,
  NO_ROTATION,
} from '../../machines/collector/ingest-key.ts';
import { CollectorError } from './errors.ts';
import type { RingKeys } from './key-ring.ts';
import { INGEST_KEY_NAME, type KeyMaker, type KeySource, ownKeyFile } from './key-source.ts';
import { describeIngestKeyRecord } from './words.ts';

/** How often a host looks whether the key in force is another one by now, milliseconds. */
const LOOK_MS = 250;
/** So often until a change of the key has to have come back. */
const MOST_LOOKS = 20;

const VERSION = 1;

const name = z.string().min(1).max(64);
/** The keys in force, as they are in a log or come from another host. */
const keys = z.object({
  ...{ order: z.number(), current: name },
  ...{ previous: name.optional(), retired: name.optional() },
});

/** Its only actor has the key `INGEST_KEY_NAME`; it is on every host. */
export const ingestKeyActor = defineActor({
  type: 'collector.ingest_key',
  machine: ingestKey,
  version: VERSION,
  hear: (own, { version, context, from }): IngestKeyEvent | undefined => {
    const heard = keys.safeParse(context).data;
    const known = own ? keys.parse(own.context) : NO_ROTATION;
    if (version !== VERSION || !heard)
      throw new TypeError('it is the state of an ingest key of another version');
    if (!isNews(known, heard)) return undefined;
    return { type: 'HEARD', from, keys: heard };
  },
  tell: ({ context }) => ({ ...context, changed: context.order ?? 0 }),
  describe: describeIngestKeyRecord,
});

const change = z.discriminatedUnion('type', [
  z.object({ type: z.literal('RENEWED'), from: name, to: name }),
  z.object({ type: z.literal('RETIRED'), current: name }),
]);

export const ingestKeyChanged = defineTopic(
  'collector.ingest_key_changed',
  change,
  'The ingest key of the cluster is another one, or the one before it is retired.',
);

/**
 * The ingest key of a cluster whose hosts are their own collectors. Every host derives it from the cluster's key and a name that is
 * no secret, so that no key travels. A key that this host had before it joined admits until the next one is retired.
 */
export class SharedKey implements KeyMaker {
  /** The key in use, for producers on this machine. */
  readonly file: string;
  readonly #before: string;
  readonly #secret: Buffer;
  readonly #services: Pick<Services, 'actors' | 'bus'>;
  /** The key that was retired last, as far as this process has seen it. */
  #retired: string | undefined;

  constructor(services: Pick<Services, 'actors' | 'bus' | 'dataDir'>, cluster: Pick<Cluster, 'key'>) {
    this.file = ownKeyFile(services.dataDir);
    this.#before = `${this.file}.before`;
    this.#secret = cluster.key('ingest keys');
    this.#services = services;
    this.#retired = this.names.retired;
  }

  /** The names of the keys in force. */
  get names(): IngestKeyContext {
    return this.#services.actors.get(ingestKeyActor, INGEST_KEY_NAME)?.context ?? NO_ROTATION;
  }

  /** @throws HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID, HF_CONFIG_SECRET_FOLDER */
  read(): RingKeys {
    const { current: named, previous, retired } = this.names;
    const current = this.derive(named);
    if (!createSecretFile(this.file, line(current))) {
      const kept = readTokenFile(this.file);
      if (!isDerived(kept)) replaceSecretFile(this.#before, line(kept));
      if (kept !== current) replaceSecretFile(this.file, line(current));
    }
    if (retired !== this.#retired) removeSecretFile(this.#before);
    this.#retired = retired;
    const before = existsSync(this.#before) ? [readTokenFile(this.#before)] : [];
    const overlap = previous === undefined ? [] : [this.derive(previous)];
    return { tokens: [...new Set([current, ...overlap, ...before])], current, leaving: before };
  }

  regenerate(): void {
    const from = this.names.current;
    this.#services.bus.publish(ingestKeyChanged, { type: 'RENEWED', from, to: randomUUID() });
  }

  /** @throws HF_COLLECTOR_HOSTS the other hosts cannot be told now, so the key before still admits */
  async retire(signal: AbortSignal): Promise<void> {
    this.#services.bus.publish(ingestKeyChanged, { type: 'RETIRED', current: this.names.current });
    for (let looks = 0; this.names.previous !== undefined; looks += 1) {
      if (looks >= MOST_LOOKS) throw new CollectorError('HF_COLLECTOR_HOSTS', { hosts: 'any host' });
      await sleep(LOOK_MS, undefined, { signal });
    }
  }

  /** The key of a name, in the form of a UUID of version 8; a host alone makes them of version 4. */
  derive(named: string): string {
    const bytes = createHmac('sha256', this.#secret).update(named).digest().subarray(0, 16);
    bytes[6] = (Number(bytes[6]) & 0x0f) | 0x80;
    bytes[8] = (Number(bytes[8]) & 0x3f) | 0x80;
    const hex = bytes.toString('hex');
    return [0, 8, 12, 16, 20].map((at, part) => hex.slice(at, [8, 12, 16, 20, 32][part])).join('-');
  }
}

export function sharedSource(key: SharedKey, clock: Services['clock']): KeySource {
  return {
    kind: 'own',
    place: key.file,
    read: () => ({ ...key.read(), findings: [] }),
    watch(changed) {
      let seen = JSON.stringify(key.names);
      let cancel = () => {};
      const look = () => {
        const names = JSON.stringify(key.names);
        if (names !== seen) changed();
        seen = names;
        cancel = clock.after(LOOK_MS, look);
      };
      cancel = clock.after(LOOK_MS, look);
      return () => cancel();
    },
  };
}

/** Whether a key is a cluster's: perhaps an old one, which must not admit any more. */
const isDerived = (token: string): boolean => token.charAt(14) === '8';

const line = (token: string): Buffer => Buffer.from(`${token}\n`);
