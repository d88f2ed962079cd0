import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import { maskText } from '../../../core/host/logging/mask-text.ts';
import { plainText } from '../../../core/host/terminal.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { withoutControlFields } from '../config/network-config.ts';

/** An apply takes 8 s and more on real hardware; after this long nobody knows what became of it. */
const SET_PATIENCE_MS = 150_000;
const READ_PATIENCE_MS = 60_000;

/** How the router answered a write. `unknown`: it may or may not have come about. */
export type WriteAnswer =
  | { readonly kind: 'done'; readonly ncid: string }
  /** `code` only from our own router, whose refusal means that nothing was applied. */
  | { readonly kind: 'refused'; readonly reason: string; readonly code?: string }
  | { readonly kind: 'unknown'; readonly reason: string };

/** The router's HTTP API as the commands use it. It has no way to bypass the ncid check (R4). */
export class RouterClient {
  readonly url: string;
  readonly #token: string | undefined;

  /** @param token sent as bearer token */
  constructor(url: string, token: string | undefined) {
    this.url = url.replace(/\/+$/, '');
    this.#token = token;
  }

  /** @throws HF_ROUTER_UNREACHABLE */
  async active(signal: AbortSignal): Promise<NetworkConfig> {
    const config = await this.get('/v1/config/active', signal);
    if (isObject(config)) return config;
    throw new HoldfastError('HF_ROUTER_UNREACHABLE', { reason: 'what it answered is no config' });
  }

  /** @throws HF_ROUTER_UNREACHABLE */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    try {
      const answer = await this.#fetch(path, READ_PATIENCE_MS, { signal });
      if (answer.status === 200) return await answer.json();
      throw new HoldfastError('HF_ROUTER_UNREACHABLE', { reason: `it answered ${answer.status}` });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof HoldfastError) throw error;
      throw new HoldfastError('HF_ROUTER_UNREACHABLE', { reason: causeOf(error) }, { cause: error });
    }
  }

  /** Opens a transaction with a whole config, which bears the ncid it was read with. */
  append(config: NetworkConfig, transID: string): Promise<WriteAnswer> {
    return this.#set({ ...withoutControlFields(config), transactionOp: 'append', transID });
  }

  /** Ends a transaction. */
  finish(transactionOp: 'commit' | 'revert', transID: string): Promise<WriteAnswer> {
    return this.#set({ transactionOp, transID });
  }

  async #set(body: object): Promise<WriteAnswer> {
    try {
      const answer = await this.#fetch('/v1/config/set', SET_PATIENCE_MS, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const said: unknown = await answer.json().catch(() => undefined);
      const { ncid, errors, code } = isObject(said) ? said : {};
      if (answer.status === 200) return { kind: 'done', ncid: typeof ncid === 'string' ? ncid : '' };
      const texts = Array.isArray(errors) ? errors.filter((text) => typeof text === 'string') : [];
      const reason = plainText(maskText(texts.join('; '))) || `it answered ${answer.status}`;
      // A proxy without the router, a router that is starting or overloaded, an answer that did not come in time.
      if ([502, 503, 504].includes(answer.status)) return { kind: 'unknown', reason };
      return { kind: 'refused', reason, ...(typeof code === 'string' && { code }) };
    } catch (error) {
      return { kind: 'unknown', reason: causeOf(error) };
    }
  }

  /** Node's own fetch is undici, and loads in a tenth of the package's time. Redirects are not followed: secrets. */
  #fetch(path: string, patienceMs: number, init: RequestInit): Promise<Response> {
    const patience = AbortSignal.timeout(patienceMs);
    return fetch(`${this.url}${path}`, {
      ...init,
      redirect: 'error',
      signal: init.signal ? AbortSignal.any([init.signal, patience]) : patience,
      headers: {
        ...(init.headers as Record<string, string>),
        'user-agent': `holdfast-cli/${userName()}`,
        connection: 'close',
        ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
      },
    });
  }
}

/** A fresh id for every transaction. */
export function newTransId(): string {
  return `holdfast-${randomUUID()}`;
}

/** Who sits at the command line, for the router's history. */
function userName(): string {
  try {
    return (
      userInfo()
        .username.replace(/[^\w.-]/g, '_')
        .slice(0, 24) || 'unknown'
    );
  } catch {
    return 'unknown'; // a user without an entry in the passwd file
  }
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error as { cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? error.message;
}
