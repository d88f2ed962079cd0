/** The virtual keys: the actor of each, what changes it, and how the key of a presented value is found. */

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { VIRTUAL_KEY } from '../../../core/contracts/calls.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import type { ActorSystem } from '../../../core/kernel/actors/system.ts';
import type { LogRecord } from '../../../core/kernel/log/record.ts';
import { createSecretFile } from '../../../core/kernel/secret-file.ts';
import { virtualKey } from '../../../machines/gateway/key.ts';
import { isNews } from '../../../machines/gateway/key-heard.ts';
import { NO_CALLS } from '../../../machines/gateway/key-limits.ts';
import type { KeyContext } from '../../../machines/gateway/key-shapes.ts';
import { describeGatewayRecord } from '../words.ts';
import { canonical, hasLabel } from './request.ts';

const VERSION = 1;

/** What a key's machine knows, as it is in a log or comes from another host. */
const essentials = z.looseObject({
  ...{ revision: z.number(), spend: z.number(), calls: z.number(), refused: z.number() },
  ...{ presents: z.record(z.string(), z.object({ until: z.number().optional() })) },
  terms: z.looseObject({ alias: z.string(), servers: z.array(z.string()) }).optional(),
});
const keyContext = z.custom<KeyContext>((value) => essentials.safeParse(value).success);
const UNKNOWN: KeyContext = { revision: 0, presents: {}, window: NO_CALLS, spend: 0, calls: 0, refused: 0 };

/** A virtual key. The actor's key is the id of the first value it was presented by. */
export const keyActor = defineActor({
  type: VIRTUAL_KEY,
  machine: virtualKey,
  version: VERSION,
  durability: durabilityOf,
  hear: (own, { version, context, from, at, aheadMs }) => {
    const [known, heard] = [own && keyContext.parse(own.context), keyContext.safeParse(context).data];
    if (version !== VERSION || !heard) throw new TypeError('it is the state of a key of another version');
    if (!isNews(known ?? UNKNOWN, heard)) return undefined;
    return { type: 'KEY_HEARD', at, from, aheadMs, context: heard };
  },
  describe: describeGatewayRecord,
});

/**
 * How long a request waits for a decision, milliseconds: it is made at once, and waits for its record only. Beyond that
 * the answer is HF_HTTP_TIMEOUT, and what was decided is in the log.
 */
export const DECISION_MS = 10_000;

/** The effects of a call that is admitted, and of nothing that a person should hear of. */
const ADMITTED: ReadonlySet<string> = new Set(['gateway.forward', 'gateway.want_slice']);

/** Admitted calls are batched: a crash may cost their last moments. Whatever changes or refuses is not (C2). */
function durabilityOf({ event, effects }: LogRecord): 'sync' | 'batched' {
  if (event.type === 'CALL_ENDED' || event.type === 'SLICE_WANTED') return 'batched';
  const forwarded = effects.some(({ type }) => type === 'gateway.forward');
  const onlyForwarded = forwarded && effects.every(({ type }) => ADMITTED.has(type));
  return event.type === 'CALL' && onlyForwarded && event.writes !== true ? 'batched' : 'sync';
}

const limits = {
  owner: z.string().exactOptional(),
  tools: z.array(z.string()).readonly().exactOptional(),
  rpmLimit: z.number().exactOptional(),
  maxBudget: z.number().exactOptional(),
  maxParallel: z.number().exactOptional(),
  maxStreams: z.number().exactOptional(),
  expiresAt: z.number().exactOptional(),
  restriction: z.string().exactOptional(),
  budgetMs: z.number().exactOptional(),
  rpmLimits: z.record(z.string(), z.number()).exactOptional(),
  blocked: z.literal(true).exactOptional(),
  metadata: z.record(z.string(), z.unknown()).exactOptional(),
};
const terms = z.object({ alias: z.string(), servers: z.array(z.string()).readonly(), ...limits });
const at = z.number();
const by = z.string().max(128).exactOptional();
const presented = z.string();

const change = z.discriminatedUnion('type', [
  z.object({ type: z.literal('KEY_CREATED'), at, by, terms, presented }),
  z.object({
    type: z.literal('KEY_UPDATED'),
    at,
    by,
    set: z.object({
      alias: z.string().exactOptional(),
      servers: z.array(z.string()).readonly().exactOptional(),
      ...limits,
    }),
    clear: z
      .array(
        z.enum([
          'owner',
          'tools',
          'rpmLimit',
          'maxBudget',
          'maxParallel',
          'maxStreams',
          'expiresAt',
          'restriction',
          'budgetMs',
          'rpmLimits',
          'blocked',
          'metadata',
        ]),
      )
      .readonly()
      .exactOptional(),
  }),
  z.object({ type: z.literal('KEY_ROTATED'), at, by, presented, overlapMs: z.number().exactOptional() }),
  z.object({ type: z.literal('KEY_REVOKED'), at, by }),
]);
const reading = z.object({ type: z.literal('KEY_READ'), at, presented });

/** A change of a key, as its actor gets it. */
export type KeyChange = z.output<typeof change>;

export const keyChangeRequested = defineTopic(
  'gateway.key_change_requested',
  z.object({ key: z.string(), change }),
  'A virtual key is to be made, changed, rotated or revoked.',
);

export const keyReadRequested = defineTopic(
  'gateway.key_read_requested',
  z.object({ key: z.string(), reading }),
  'A virtual key is to be read by its holder.',
);

/** Declares the actor of keys, and what changes them: on every host, in the same order. */
export function registerKeys(
  context: PluginContext<{
    readonly keys: KeyDirectory;
    readonly services: Pick<Services, 'pendingReplies'>;
  }>,
): void {
  context.actor(keyActor);
  context.route(keyReadRequested, keyActor, ({ payload: { key, reading } }) => [{ key, event: reading }]);
  context.route(
    keyChangeRequested,
    keyActor,
    ({ payload: { key, change }, order, correlation }, { keys, services }) => {
      if (order === undefined) return [{ key, event: change }];
      // Two hosts may have allowed changes that do not go together: the first in the order holds, here as on every host.
      const conflict = keys.conflictOf(key, change);
      if (conflict) {
        services.pendingReplies.settle(correlation, { status: 409, body: { ...conflict } });
        return [];
      }
      // A key that this host does not have yet comes with all its changes.
      const isHere = change.type === 'KEY_CREATED' || keys.get(key) !== undefined;
      return isHere ? [{ key, event: { ...change, order } }] : [];
    },
    { everyHost: true },
  );
}

/** Why a change does not go together with what another host changed before. */
export const conflictSchema = z.object({
  of: z.enum(['alias', 'value']),
  /** The key that has it. */
  id: z.string(),
});

type Conflict = z.output<typeof conflictSchema>;

/** A virtual key with the state of its actor. */
export interface KeyView {
  /** The actor's key: the id of the first value of this virtual key. */
  readonly id: string;
  readonly state: string;
  readonly context: KeyContext;
}

/** What recognizes a credential in a request. */
export type KeyLookup = Pick<KeyDirectory, 'find' | 'isMaster' | 'isSession'>;

export interface KeyDirectoryOptions {
  /** Whether keys may come from other hosts, with values that this process did not see. */
  readonly isShared?: boolean;
  /** Knows the master key as it is now. */
  readonly master: Pick<MasterKey, 'is'>;
  /** Knows the session ids that this gateway sealed. */
  readonly sessions: { knows(value: string): boolean };
}

/**
 * Finds the virtual key that a presented value belongs to. It is an index over the actors: values are known by their
 * hashes only, so that every wrong guess takes the same time (G19).
 */
export class KeyDirectory {
  readonly #actors: ActorSystem;
  readonly #options: KeyDirectoryOptions;
  /** Ids of the values that keys were rotated to, each with the id of its key. The first value's id is the key's id. */
  readonly #rotated = new Map<string, string>();
  #scannedAt = Number.NEGATIVE_INFINITY;

  constructor(actors: ActorSystem, options: KeyDirectoryOptions) {
    this.#actors = actors;
    this.#options = options;
    this.#scan();
  }

  /** Adds the values of a key to the index. Call it after the key was rotated. */
  index(id: string): void {
    for (const valueId of Object.keys(this.get(id)?.context.presents ?? {})) {
      if (valueId !== id) this.#rotated.set(valueId, id);
    }
  }

  /** @param valueId id of a presented value @returns the id of its key */
  find(valueId: string): string | undefined {
    const known = this.#rotated.get(valueId) ?? (this.get(valueId) && valueId);
    if (known !== undefined || !this.#options.isShared) return known;
    // Keys that another host shares are there without a change of them; who guesses values causes one scan a second.
    if (performance.now() - this.#scannedAt >= SCAN_EVERY_MS) this.#scan();
    return this.#rotated.get(valueId);
  }

  /** @returns why a change cannot be: another key has the value, or is good and has the alias, when it is made */
  conflictOf(id: string, change: KeyChange): Conflict | undefined {
    const other = 'presented' in change ? this.find(change.presented) : undefined;
    if (other !== undefined && other !== id) return { of: 'value', id: other };
    const alias = this.aliasAfter(id, change);
    const holder = alias === undefined ? undefined : this.holderOf(alias, id, change.at);
    return holder === undefined ? undefined : { of: 'alias', id: holder };
  }

  /** @returns the other key that is good at a time and has an alias */
  holderOf(alias: string, id: string, at: number): string | undefined {
    const wanted = canonical(alias); // an alias of an earlier version may not be canonical
    return this.list().find(
      (key) => key.id !== id && hasLabel(key.context.terms?.alias, wanted) && isGoodAt(key, at),
    )?.id;
  }

  /** @returns the alias that a key takes by a change: a new one, or its own again, which it gave up when it expired */
  aliasAfter(id: string, change: KeyChange): string | undefined {
    if (change.type === 'KEY_CREATED') return change.terms.alias;
    if (change.type !== 'KEY_UPDATED') return undefined;
    const { at, set, clear = [] } = change;
    const key = this.get(id);
    const revives = key && !isGoodAt(key, at) && (set.expiresAt !== undefined || clear.includes('expiresAt'));
    return set.alias ?? (revives ? key.context.terms?.alias : undefined);
  }

  #scan(): void {
    this.#scannedAt = performance.now();
    for (const { id } of this.list()) this.index(id);
  }

  /** @param valueId id of a presented value */
  isMaster(valueId: string): boolean {
    return this.#options.master.is(valueId);
  }

  /** @param value whether it is a session id of this gateway, which looks random and is no key */
  isSession(value: string): boolean {
    return this.#options.sessions.knows(value);
  }

  get(id: string): KeyView | undefined {
    const actor = this.#actors.get(keyActor, id);
    return actor && { id, state: String(actor.value), context: actor.context };
  }

  list(): KeyView[] {
    return this.#actors
      .list(keyActor)
      .map(({ key, value, context }) => ({ id: key, state: String(value), context }));
  }
}

const SCAN_EVERY_MS = 1_000;

/** Whether a key may be used at a time: it then has its alias alone. */
export function isGoodAt({ state, context }: KeyView, at: number): boolean {
  return state === 'active' && (context.terms?.expiresAt ?? Number.POSITIVE_INFINITY) > at;
}

/** The header that carries a virtual key, on every route. */
export const KEY_HEADER = 'x-gateway-api-key';

const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/;

/** @returns the value of a header `Bearer <value>`; undefined for any other header */
export function bearerIn(header: string): string | undefined {
  return BEARER.exec(header)?.[1];
}

/** The id of a value in records: 128 bits of its hash, the same in every process. */
export function keyId(value: string): string {
  return `k_${hash('sha256', `holdfast virtual key\n${value}`, 'hex').slice(0, 32)}`;
}

/** Compares two ids in constant time (G19). */
export function sameKey(id: string, other: string): boolean {
  const [one, two] = [Buffer.from(id), Buffer.from(other)];
  return one.length === two.length && timingSafeEqual(one, two);
}

const MAX_AGE_MS = 5_000;

const newMasterKey = (bytes: Buffer): Buffer => Buffer.from(`sk-${bytes.toString('base64url')}\n`);

/**
 * The key of the admin endpoints (G14, G25). Only its id is kept in memory. The file is read again every five seconds,
 * so that a changed key needs no restart.
 */
export class MasterKey {
  readonly #read: () => string;
  /** One that is good beside it. */
  readonly #before: MasterKey | undefined;
  #id = '';
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(read: () => string, before?: () => string) {
    this.#read = read;
    this.#before = before && new MasterKey(before);
    this.id();
  }

  /**
   * Reads it from the given file, from `HOLDFAST_MASTER_KEY_FILE` or `HOLDFAST_MASTER_KEY`, else from the data folder,
   * where it is generated at the first start. In a cluster it is derived where none is given, the same on all hosts, and
   * lies in the data folder; one that this host generated before it joined stays good here.
   *
   * @param shared of which hosts of a cluster derive it
   * @throws HF_CONFIG_SECRET_MISSING, HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID
   */
  static open(
    dataDir: string,
    file?: string,
    shared?: Buffer,
    env: NodeJS.ProcessEnv = process.env,
  ): MasterKey {
    const named = file ?? env.HOLDFAST_MASTER_KEY_FILE;
    if (named) return new MasterKey(() => readTokenFile(named));
    const given = env.HOLDFAST_MASTER_KEY;
    if (given) return new MasterKey(() => given);
    const own = join(dataDir, 'secrets', 'master-key');
    if (!shared) {
      createSecretFile(own, newMasterKey(randomBytes(32)));
      return new MasterKey(() => readTokenFile(own));
    }
    const ofCluster = join(dataDir, 'secrets', 'cluster-master-key');
    const derived = newMasterKey(shared);
    rmSync(ofCluster, { force: true }); // the cluster may have another key now
    createSecretFile(ofCluster, derived);
    const before = existsSync(own) ? () => readTokenFile(own) : undefined;
    return new MasterKey(() => derived.toString('utf8').trim(), before);
  }

  /** @param valueId id of a presented value */
  is(valueId: string): boolean {
    const isOlder = this.#before !== undefined && sameKey(valueId, this.#before.id());
    return sameKey(valueId, this.id()) || isOlder;
  }

  /** @returns the id of the key. While the file can't be read, the last key stays valid. */
  id(): string {
    const now = performance.now();
    if (now - this.#readAt < MAX_AGE_MS) return this.#id;
    try {
      this.#id = keyId(this.#read());
    } catch (error) {
      if (this.#id === '') throw error;
    }
    this.#readAt = now;
    return this.#id;
  }
}
