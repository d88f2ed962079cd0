import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Reply } from '../../../core/host/http/pending-replies.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { CallRule } from '../../../machines/gateway/call-shapes.ts';
import { GatewayError } from '../errors.ts';
import {
  blockRequest,
  canonical,
  deleteRequest,
  generateRequest,
  hasLabel,
  invalid,
  type KnownServers,
  readRequest,
  rotateRequest,
  termsOf,
  updateRequest,
} from './request.ts';
import {
  conflictSchema,
  DECISION_MS,
  isGoodAt,
  type KeyChange,
  type KeyDirectory,
  type KeyView,
  keyChangeRequested,
  keyId,
  keyReadRequested,
} from './virtual-keys.ts';

/** What changes of keys use. */
interface KeyAdminServices {
  readonly services: Pick<Services, 'bus' | 'pendingReplies' | 'clock'>;
  readonly keys: KeyDirectory;
  readonly servers: () => KnownServers;
  /** For how long this host has been cut off from the others of its cluster, milliseconds; 0 while it is not. */
  readonly cutOffMs: () => number;
}

/** A key with its new value, which is shown once and not kept. */
export interface MintedKey {
  readonly value: string;
  readonly view: KeyView;
}

/** The reply of the machine to a key that reads itself. */
const readDecision = z.object({
  status: z.number(),
  body: z.object({
    rule: z.custom<CallRule>((rule) => typeof rule === 'string').exactOptional(),
    retryAfterMs: z.number().exactOptional(),
  }),
});

type ReadDecision = z.output<typeof readDecision>;

const MOST_VALUES = 64;

/** Where a change comes from. */
export interface ChangeOrigin {
  readonly correlation: string;
  /** The operator's name, or the fingerprint of the master key that was presented. */
  readonly by: string;
}

/**
 * Changes virtual keys (G14) for the REST paths and the control socket. Each change is an event of the key's actor, and
 * is answered when its record is durable. Values are in no event.
 */
export class KeyAdmin {
  readonly #gateway: KeyAdminServices;
  /** Aliases of changes that are not decided yet, each with its key, so that two keys never get the same one. */
  readonly #pendingAliases = new Map<string, string>();

  constructor(gateway: KeyAdminServices) {
    this.#gateway = gateway;
  }

  /**
   * @throws HF_GATEWAY_KEY_REQUEST, HF_GATEWAY_KEY_EXISTS, HF_GATEWAY_KEY_ALIAS, HF_GATEWAY_KEY_CUT_OFF; HF_LOG_WRITE, HF_HTTP_TIMEOUT
   *   it can't be recorded
   */
  async generate(body: unknown, { correlation, by }: ChangeOrigin): Promise<MintedKey> {
    this.#refuseCutOff();
    const { key: own, ...fields } = readRequest(generateRequest, body);
    const now = this.#gateway.services.clock.now();
    const { set } = termsOf(fields, { servers: this.#gateway.servers(), before: [], now });
    const value = own ?? newValue();
    const id = this.#unusedId(value, 'key');
    const terms = { alias: `key-${id.slice(2, 10)}`, servers: [], ...set };
    const change: KeyChange = { type: 'KEY_CREATED', at: now, by, terms, presented: id };
    await this.#withAlias(id, change, () => this.#ask(id, change, correlation));
    return { value, view: this.#view(id) };
  }

  /**
   * @throws HF_GATEWAY_KEY_REQUEST, HF_GATEWAY_KEY_UNKNOWN, HF_GATEWAY_KEY_REVOKED, HF_GATEWAY_KEY_ALIAS, HF_LOG_WRITE,
   *   HF_HTTP_TIMEOUT
   */
  async update(body: unknown, { correlation, by }: ChangeOrigin): Promise<KeyView> {
    const { key, ...fields } = readRequest(updateRequest, body);
    const { id, context } = this.#active(key);
    const now = this.#gateway.services.clock.now();
    const before = context.terms?.servers ?? [];
    const { set, clear } = termsOf(fields, { servers: this.#gateway.servers(), before, now });
    if (Object.keys(set).length + clear.length === 0) throw invalid('body', 'it changes nothing');
    const change: KeyChange = { type: 'KEY_UPDATED', at: now, by, set, clear };
    await this.#withAlias(id, change, () => this.#ask(id, change, correlation));
    return this.#view(id);
  }

  /** Revokes none unless all of them are found. @returns their ids @throws as `update` */
  async revoke(body: unknown, { correlation, by }: ChangeOrigin): Promise<readonly string[]> {
    const { key, keys = [], key_aliases = [] } = readRequest(deleteRequest, body);
    const named = [...(key === undefined ? [] : [key]), ...keys].map((name) => this.#active(name).id);
    const ids = [...new Set([...named, ...key_aliases.map((alias) => this.#active(this.idOf(alias)).id)])];
    for (const id of ids) {
      await this.#ask(id, { type: 'KEY_REVOKED', at: this.#gateway.services.clock.now(), by }, correlation);
    }
    return ids;
  }

  /** @throws HF_GATEWAY_KEY_EXISTS, HF_GATEWAY_KEY_ROTATIONS, HF_GATEWAY_KEY_CUT_OFF, and as `update` */
  async rotate(body: unknown, { correlation, by }: ChangeOrigin): Promise<MintedKey> {
    this.#refuseCutOff();
    const { key, new_key: own, overlap: overlapMs } = readRequest(rotateRequest, body);
    const { id, context } = this.#active(key);
    if (Object.keys(context.presents).length >= MOST_VALUES) {
      throw new GatewayError('HF_GATEWAY_KEY_ROTATIONS', { id, limit: MOST_VALUES });
    }
    const value = own ?? newValue();
    const presented = this.#unusedId(value, 'new_key');
    const at = this.#gateway.services.clock.now();
    await this.#ask(
      id,
      { type: 'KEY_ROTATED', at, by, presented, ...(overlapMs > 0 && { overlapMs }) },
      correlation,
    );
    this.#gateway.keys.index(id); // before its effect does
    return { value, view: this.#view(id) };
  }

  /** Sets a key aside, or takes it up again; open calls of a blocked key end. @throws as `update` */
  async block(body: unknown, isBlocked: boolean, { correlation, by }: ChangeOrigin): Promise<KeyView> {
    const { id } = this.#active(readRequest(blockRequest, body).key);
    const at = this.#gateway.services.clock.now();
    const change = isBlocked ? { set: { blocked: true as const } } : { set: {}, clear: ['blocked' as const] };
    await this.#ask(id, { type: 'KEY_UPDATED', at, by, ...change }, correlation);
    return this.#view(id);
  }

  /** @param presented id of the value that a key reads itself with @returns the decision */
  async read(id: string, presented: string, correlation: string): Promise<ReadDecision> {
    const at = this.#gateway.services.clock.now();
    const { bus } = this.#gateway.services;
    const decided = this.#decided(correlation);
    bus.publish(keyReadRequested, { key: id, reading: { type: 'KEY_READ', at, presented } }, { correlation });
    return readDecision.parse(await decided);
  }

  /** @param name id or alias @throws HF_GATEWAY_KEY_UNKNOWN, HF_GATEWAY_KEY_AMBIGUOUS */
  idOf(name: string): string {
    const { keys } = this.#gateway;
    const byId = keys.find(name);
    if (byId !== undefined) return byId;
    const wanted = canonical(name);
    const called = keys.list().filter(({ context }) => hasLabel(context.terms?.alias, wanted));
    const valid = called.filter((key) => this.#isValid(key));
    const [found, second] = valid.length > 0 ? valid : called;
    if (!found) throw unknown(name);
    if (second) throw new GatewayError('HF_GATEWAY_KEY_AMBIGUOUS', { name });
    return found.id;
  }

  /** @param key value or id */
  find(key: string): KeyView {
    const { keys } = this.#gateway;
    const id = keys.find(key) ?? keys.find(keyId(key));
    const view = id === undefined ? undefined : keys.get(id);
    if (!view) throw unknown(key);
    return view;
  }

  #active(key: string): KeyView {
    const view = this.find(key);
    if (view.state !== 'active') throw new GatewayError('HF_GATEWAY_KEY_REVOKED', { id: view.id });
    return view;
  }

  #unusedId(value: string, field: string): string {
    const id = keyId(value);
    if (this.#gateway.keys.isMaster(id)) throw invalid(field, 'that is the master key');
    const taken = this.#gateway.keys.find(id);
    if (taken !== undefined) throw new GatewayError('HF_GATEWAY_KEY_EXISTS', { id: taken });
    return id;
  }

  /**
   * Reserves an alias during a change: commands and reports use it, so two valid keys must not share one.
   *
   * @throws HF_GATEWAY_KEY_ALIAS
   */
  async #withAlias<T>(id: string, change: KeyChange, made: () => Promise<T>): Promise<T> {
    const { keys } = this.#gateway;
    const alias = keys.aliasAfter(id, change);
    if (alias === undefined) return made();
    const wanted = canonical(alias);
    const taken = keys.holderOf(wanted, id, change.at) ?? this.#pendingAliases.get(wanted);
    if (taken !== undefined) throw new GatewayError('HF_GATEWAY_KEY_ALIAS', { alias, id: taken });
    this.#pendingAliases.set(wanted, id);
    try {
      return await made();
    } finally {
      this.#pendingAliases.delete(wanted);
    }
  }

  #isValid(key: KeyView): boolean {
    return isGoodAt(key, this.#gateway.services.clock.now());
  }

  #view(id: string): KeyView {
    const view = this.#gateway.keys.get(id);
    if (!view) throw unknown(id);
    return view;
  }

  /** A value is shown once: it would be lost if its key were made when nobody waits for it any more. A start, or an election, passes sooner. */
  #refuseCutOff(): void {
    if (this.#gateway.cutOffMs() > DECISION_MS / 2) throw new GatewayError('HF_GATEWAY_KEY_CUT_OFF');
  }

  async #ask(id: string, change: KeyChange, correlation: string): Promise<void> {
    const { status, body } = await this.#request(id, change, correlation);
    if (status === 200) return;
    const conflict = conflictSchema.safeParse(body).data;
    if (conflict?.of === 'alias') {
      const alias = this.#gateway.keys.aliasAfter(id, change) ?? '';
      throw new GatewayError('HF_GATEWAY_KEY_ALIAS', { alias, id: conflict.id });
    }
    const exists = conflict !== undefined || change.type === 'KEY_CREATED';
    const code = exists ? 'HF_GATEWAY_KEY_EXISTS' : 'HF_GATEWAY_KEY_REVOKED';
    throw new GatewayError(code, { id: conflict?.id ?? id });
  }

  #request(key: string, change: KeyChange, correlation: string): Promise<Reply> {
    const decided = this.#decided(correlation);
    this.#gateway.services.bus.publish(keyChangeRequested, { key, change }, { correlation });
    return decided;
  }

  #decided(correlation: string): Promise<Reply> {
    return this.#gateway.services.pendingReplies.open(correlation, DECISION_MS);
  }
}

const newValue = (): string => `sk-${randomBytes(32).toString('base64url')}`;

/** Repeats the name only when it can't be a key's value. */
function unknown(name: string): HoldfastError {
  const isName = /^k_[0-9a-f]{32}$/.test(name) || /^(?!.*sk-)[\w .@:-]{1,19}$/.test(name);
  return new GatewayError('HF_GATEWAY_KEY_UNKNOWN', { name: isName ? name : 'what was given' });
}
