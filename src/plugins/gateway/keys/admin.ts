import { randomBytes } from 'node:crypto';
import type { Reply } from '../../../core/host/http/exchanges.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { KeyReply } from '../../../machines/gateway/key.ts';
import { GatewayError } from '../errors.ts';
import { DECISION_MS, type KeyChange, keyChangeRequested } from './actor.ts';
import type { KeyDirectory, KeyView } from './directory.ts';
import { keyId } from './directory.ts';
import {
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

/** What changes of keys stand on. */
export interface KeyAdminParts {
  readonly services: Pick<Services, 'bus' | 'exchanges' | 'clock'>;
  readonly keys: KeyDirectory;
  readonly servers: () => KnownServers;
}

/** A key, and the value that it is presented by: shown once, and nowhere kept. */
export interface MintedKey {
  readonly value: string;
  readonly view: KeyView;
}

const MOST_VALUES = 64;

/**
 * Changes of virtual keys (G14), asked for over HTTP or the control socket. Each is an event of the key's actor, and is
 * answered when its record is durable; values never leave the request.
 */
export class KeyAdmin {
  readonly #parts: KeyAdminParts;
  /** Aliases that are being given, with the key that gets each: two at once must not both get one. */
  readonly #asked = new Map<string, string>();

  constructor(parts: KeyAdminParts) {
    this.#parts = parts;
  }

  /** @throws HF_GATEWAY_KEY_REQUEST, HF_GATEWAY_KEY_EXISTS, HF_GATEWAY_KEY_ALIAS; HF_LOG_WRITE, HF_HTTP_TIMEOUT it can't be recorded */
  async generate(body: unknown, correlation: string): Promise<MintedKey> {
    const { key: own, ...fields } = readRequest(generateRequest, body);
    const now = this.#parts.services.clock.now();
    const { set } = termsOf(fields, { servers: this.#parts.servers(), before: [], now });
    const value = own ?? newValue();
    const id = this.#free(value, 'key');
    const terms = { alias: `key-${id.slice(2, 10)}`, servers: [], ...set };
    const change: KeyChange = { type: 'KEY_CREATED', at: now, terms, presented: id };
    await this.#named(id, terms.alias, () => this.#ask(id, change, correlation));
    return { value, view: this.#view(id) };
  }

  /**
   * @throws HF_GATEWAY_KEY_REQUEST, HF_GATEWAY_KEY_UNKNOWN, HF_GATEWAY_KEY_REVOKED, HF_GATEWAY_KEY_ALIAS, HF_LOG_WRITE,
   *   HF_HTTP_TIMEOUT
   */
  async update(body: unknown, correlation: string): Promise<KeyView> {
    const { key, ...fields } = readRequest(updateRequest, body);
    const view = this.#active(key);
    const { id, context } = view;
    const now = this.#parts.services.clock.now();
    const before = context.terms?.servers ?? [];
    const { set, clear } = termsOf(fields, { servers: this.#parts.servers(), before, now });
    if (Object.keys(set).length + clear.length === 0) throw invalid('body', 'it changes nothing');
    const change: KeyChange = { type: 'KEY_UPDATED', at: now, set, clear };
    // A key that has expired, and is to be good again, may have lost its alias to another.
    const revives = !this.#isGood(view) && (set.expiresAt !== undefined || clear.includes('expiresAt'));
    const alias = set.alias ?? (revives ? context.terms?.alias : undefined);
    await this.#named(id, alias, () => this.#ask(id, change, correlation));
    return this.#view(id);
  }

  /** All are found before the first is revoked. @returns their ids @throws as `update` */
  async revoke(body: unknown, correlation: string): Promise<readonly string[]> {
    const { key, keys = [], key_aliases = [] } = readRequest(deleteRequest, body);
    const named = [...(key === undefined ? [] : [key]), ...keys].map((name) => this.#active(name).id);
    const ids = [...new Set([...named, ...key_aliases.map((alias) => this.#active(this.idOf(alias)).id)])];
    for (const id of ids) {
      await this.#ask(id, { type: 'KEY_REVOKED', at: this.#parts.services.clock.now() }, correlation);
    }
    return ids;
  }

  /** @throws HF_GATEWAY_KEY_EXISTS, HF_GATEWAY_KEY_ROTATIONS, and as `update` */
  async rotate(body: unknown, correlation: string): Promise<MintedKey> {
    const { key, new_key: own, overlap: overlapMs } = readRequest(rotateRequest, body);
    const { id, context } = this.#active(key);
    if (Object.keys(context.presents).length >= MOST_VALUES) {
      throw new GatewayError('HF_GATEWAY_KEY_ROTATIONS', { id, limit: MOST_VALUES });
    }
    const value = own ?? newValue();
    const presented = this.#free(value, 'new_key');
    const at = this.#parts.services.clock.now();
    await this.#ask(id, { type: 'KEY_ROTATED', at, presented, overlapMs }, correlation);
    this.#parts.keys.index(id);
    return { value, view: this.#view(id) };
  }

  /** What a key is told that asks about itself. @param presented id of the value */
  async read(id: string, presented: string, correlation: string): Promise<KeyReply> {
    const at = this.#parts.services.clock.now();
    return (await this.#request(id, { type: 'KEY_READ', at, presented }, correlation)) as unknown as KeyReply;
  }

  /** @param name id or alias @throws HF_GATEWAY_KEY_UNKNOWN, HF_GATEWAY_KEY_AMBIGUOUS */
  idOf(name: string): string {
    const { keys } = this.#parts;
    const byId = keys.find(name);
    if (byId !== undefined) return byId;
    const wanted = canonical(name);
    const called = keys.list().filter(({ context }) => hasLabel(context.terms?.alias, wanted));
    const good = called.filter((key) => this.#isGood(key));
    const [found, second] = good.length > 0 ? good : called;
    if (!found) throw unknown(name);
    if (second) throw new GatewayError('HF_GATEWAY_KEY_AMBIGUOUS', { name });
    return found.id;
  }

  /** @param key value or id */
  find(key: string): KeyView {
    const { keys } = this.#parts;
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

  #free(value: string, field: string): string {
    const id = keyId(value);
    if (this.#parts.keys.isMaster(id)) throw invalid(field, 'that is the master key');
    const taken = this.#parts.keys.find(id);
    if (taken !== undefined) throw new GatewayError('HF_GATEWAY_KEY_EXISTS', { id: taken });
    return id;
  }

  /**
   * Spend and commands go by the alias, so that it names one key that is good.
   *
   * @throws HF_GATEWAY_KEY_ALIAS
   */
  async #named<T>(id: string, alias: string | undefined, change: () => Promise<T>): Promise<T> {
    if (alias === undefined) return change();
    const wanted = canonical(alias); // that of a key that is good again may be older than the rule
    const holder = this.#parts.keys
      .list()
      .find((key) => key.id !== id && hasLabel(key.context.terms?.alias, wanted) && this.#isGood(key));
    const taken = holder?.id ?? this.#asked.get(wanted);
    if (taken !== undefined) throw new GatewayError('HF_GATEWAY_KEY_ALIAS', { alias, id: taken });
    this.#asked.set(wanted, id);
    try {
      return await change();
    } finally {
      this.#asked.delete(wanted);
    }
  }

  #isGood({ state, context }: KeyView): boolean {
    const { expiresAt = Number.POSITIVE_INFINITY } = context.terms ?? {};
    return state === 'active' && expiresAt > this.#parts.services.clock.now();
  }

  #view(id: string): KeyView {
    const view = this.#parts.keys.get(id);
    if (!view) throw unknown(id);
    return view;
  }

  async #ask(id: string, change: KeyChange, correlation: string): Promise<void> {
    const { status } = await this.#request(id, change, correlation);
    if (status === 200) return;
    const code = change.type === 'KEY_CREATED' ? 'HF_GATEWAY_KEY_EXISTS' : 'HF_GATEWAY_KEY_REVOKED';
    throw new GatewayError(code, { id });
  }

  #request(key: string, change: KeyChange, correlation: string): Promise<Reply> {
    const { bus, exchanges } = this.#parts.services;
    const decided = exchanges.open(correlation, DECISION_MS);
    bus.publish(keyChangeRequested, { key, change }, { correlation });
    return decided;
  }
}

const newValue = (): string => `sk-${randomBytes(32).toString('base64url')}`;

/** A name that may be a key's value is not repeated. */
function unknown(name: string): HoldfastError {
  const isName = /^k_[0-9a-f]{32}$/.test(name) || /^(?!.*sk-)[\w .@:-]{1,19}$/.test(name);
  return new GatewayError('HF_GATEWAY_KEY_UNKNOWN', { name: isName ? name : 'what was given' });
}
