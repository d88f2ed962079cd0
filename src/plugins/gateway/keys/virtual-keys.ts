/** The virtual keys: the actor of each, what changes it, and how the key of a presented value is found. */

import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { VIRTUAL_KEY } from '../../../core/contracts/calls.ts';
import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { defineActor } from '../../../core/kernel/actors/definition.ts';
import type { ActorSystem } from '../../../core/kernel/actors/system.ts';
import type { LogRecord } from '../../../core/kernel/log/record.ts';
import { createSecretFile } from '../../../core/kernel/secret-file.ts';
import { type KeyContext, virtualKey } from '../../../machines/gateway/key.ts';
import { describeGatewayRecord } from '../words.ts';

/** A virtual key. The actor's key is the id of the first value it was presented by. */
export const keyActor = defineActor({
  type: VIRTUAL_KEY,
  machine: virtualKey,
  version: 1,
  durability: durabilityOf,
  describe: describeGatewayRecord,
});

/**
 * How long a request waits for a decision, milliseconds: it is made at once, and waits for its record only. Beyond that
 * the answer is HF_HTTP_TIMEOUT, and what was decided is in the log.
 */
export const DECISION_MS = 10_000;

/** Admitted calls are batched: a crash may cost their last moments. Whatever changes or refuses is not (C2). */
function durabilityOf({ event, effects }: LogRecord): 'sync' | 'batched' {
  if (event.type === 'CALL_ENDED') return 'batched';
  const forwarded = effects.some(({ type }) => type === 'gateway.forward');
  const onlyForwarded = forwarded && effects.length === 1;
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
  z.object({ type: z.literal('KEY_ROTATED'), at, by, presented, overlapMs: z.number() }),
  z.object({ type: z.literal('KEY_REVOKED'), at, by }),
  z.object({ type: z.literal('KEY_READ'), at, presented }),
]);

/** A reading or a change of a key, as its actor gets it. */
export type KeyChange = z.output<typeof change>;

export const keyChangeRequested = defineTopic(
  'gateway.key_change_requested',
  z.object({ key: z.string(), change }),
  'A virtual key is to be made, changed, rotated, revoked, or read by its holder.',
);

/** Declares the actor of keys, and what changes them. */
export function registerKeys(context: PluginContext<unknown>): void {
  context.actor(keyActor);
  context.route(keyChangeRequested, keyActor, ({ payload: { key, change } }) => [{ key, event: change }]);
}

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
  /** Gives the id of the master key as it is now. */
  readonly master: Pick<MasterKey, 'id'>;
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

  constructor(actors: ActorSystem, options: KeyDirectoryOptions) {
    this.#actors = actors;
    this.#options = options;
    for (const { id } of this.list()) this.index(id);
  }

  /** Adds the values of a key to the index. Call it after the key was rotated. */
  index(id: string): void {
    for (const valueId of Object.keys(this.get(id)?.context.presents ?? {})) {
      if (valueId !== id) this.#rotated.set(valueId, id);
    }
  }

  /** @param valueId id of a presented value @returns the id of its key */
  find(valueId: string): string | undefined {
    return this.#rotated.get(valueId) ?? (this.get(valueId) && valueId);
  }

  /** @param valueId id of a presented value */
  isMaster(valueId: string): boolean {
    return sameKey(valueId, this.#options.master.id());
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

/**
 * The key of the admin endpoints (G14, G25). Only its id is kept in memory. The file is read again every five seconds,
 * so that a changed key needs no restart.
 */
export class MasterKey {
  readonly #read: () => string;
  #id = '';
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(read: () => string) {
    this.#read = read;
    this.id();
  }

  /**
   * Reads it from the given file, from `HOLDFAST_MASTER_KEY_FILE` or `HOLDFAST_MASTER_KEY`, else from the data folder,
   * where it is generated at the first start.
   *
   * @throws HF_CONFIG_SECRET_MISSING, HF_CONFIG_SECRET_MODE, HF_CONFIG_SECRET_INVALID
   */
  static open(dataDir: string, file?: string, env: NodeJS.ProcessEnv = process.env): MasterKey {
    const named = file ?? env.HOLDFAST_MASTER_KEY_FILE;
    if (named) return new MasterKey(() => readTokenFile(named));
    const given = env.HOLDFAST_MASTER_KEY;
    if (given) return new MasterKey(() => given);
    const own = join(dataDir, 'secrets', 'master-key');
    createSecretFile(own, Buffer.from(`sk-${randomBytes(32).toString('base64url')}\n`));
    return new MasterKey(() => readTokenFile(own));
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
