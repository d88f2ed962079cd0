import { randomUUID } from 'node:crypto';
import { userInfo } from 'node:os';
import type { NetworkConfig } from '../../../core/contracts/router.ts';
import {
  type HttpAnswer,
  type HttpCall,
  HttpCallError,
  HttpClient,
  type HttpClientOptions,
} from '../../../core/host/http/client.ts';
import { maskText } from '../../../core/host/logging/mask-text.ts';
import { plainText } from '../../../core/host/terminal.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { withoutControlFields } from '../config/network-config.ts';
import { RouterError } from '../errors.ts';

/** An apply takes 8 s and more on real hardware; after this long the result is unknown. */
const SET_TIMEOUT_MS = 150_000;
const READ_TIMEOUT_MS = 60_000;
const LARGEST_ANSWER = 64 * 1_048_576;

/** How the router answered a write. `unknown`: it may or may not have been applied. */
export type WriteAnswer =
  | { readonly kind: 'done'; readonly ncid: string }
  /** `code` only from our own router, whose refusal means that nothing was applied. */
  | { readonly kind: 'refused'; readonly reason: string; readonly code?: string }
  | { readonly kind: 'unknown'; readonly reason: string };

/** The router's HTTP API as the commands use it. It has no way to bypass the ncid check (R4). */
export class RouterClient {
  readonly url: string;
  readonly #http: HttpClient;
  readonly #token: string | undefined;

  /**
   * @param token sent as bearer token
   * @param trust whether the token may go to another machine in plaintext, and the only certificate that is trusted
   */
  constructor(
    url: string,
    token: string | undefined,
    trust: Pick<HttpClientOptions, 'insecure' | 'pin'> = {},
  ) {
    this.url = url.replace(/\/+$/, '');
    this.#http = new HttpClient({
      base: this.url,
      timeoutMs: READ_TIMEOUT_MS,
      answerLimit: LARGEST_ANSWER,
      ...trust,
    });
    this.#token = token;
  }

  /**
   * The active config, without the control fields that a real daemon serves with it (`reqId`).
   *
   * @throws HF_ROUTER_UNREACHABLE
   */
  async active(signal: AbortSignal): Promise<NetworkConfig> {
    const config = await this.get('/v1/config/active', signal);
    if (isObject(config)) return withoutControlFields(config);
    throw new RouterError('HF_ROUTER_UNREACHABLE', { reason: 'what it answered is no config' });
  }

  /** @throws HF_ROUTER_UNREACHABLE */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    const found = await this.find(path, signal);
    if (found) return found.body;
    throw new RouterError('HF_ROUTER_UNREACHABLE', { reason: `it answered 404 to ${path}` });
  }

  /**
   * What a route answers that not every router serves.
   *
   * @returns undefined when it answers 404
   * @throws HF_ROUTER_UNREACHABLE
   */
  async find(path: string, signal: AbortSignal): Promise<{ readonly body: unknown } | undefined> {
    try {
      const answer = await this.#call({ url: path, timeoutMs: READ_TIMEOUT_MS, signal });
      if (answer.status === 200) return { body: answer.json() };
      if (answer.status === 404) return undefined;
      throw new RouterError('HF_ROUTER_UNREACHABLE', { reason: `it answered ${answer.status}` });
    } catch (error) {
      if (!(error instanceof HttpCallError)) throw error;
      throw new RouterError('HF_ROUTER_UNREACHABLE', { reason: error.reason }, { cause: error });
    }
  }

  /** Opens a transaction with a whole config, which contains the ncid that it was read with. */
  append(config: NetworkConfig, transID: string): Promise<WriteAnswer> {
    return this.#set({ ...withoutControlFields(config), transactionOp: 'append', transID });
  }

  /** Ends a transaction. */
  finish(transactionOp: 'commit' | 'revert', transID: string): Promise<WriteAnswer> {
    return this.#set({ transactionOp, transID });
  }

  async #set(body: object): Promise<WriteAnswer> {
    try {
      const timeoutMs = SET_TIMEOUT_MS;
      const answer = await this.#call({ method: 'POST', url: '/v1/config/set', json: body, timeoutMs });
      const parsed = answer.json();
      const { ncid, errors, code } = isObject(parsed) ? parsed : {};
      if (answer.status === 200) return { kind: 'done', ncid: typeof ncid === 'string' ? ncid : '' };
      const texts = Array.isArray(errors) ? errors.filter((text) => typeof text === 'string') : [];
      const reason = plainText(maskText(texts.join('; '))) || `it answered ${answer.status}`;
      // A proxy without the router, a router that is starting or overloaded, an answer that did not come in time.
      if ([502, 503, 504].includes(answer.status)) return { kind: 'unknown', reason };
      return { kind: 'refused', reason, ...(typeof code === 'string' && { code }) };
    } catch (error) {
      if (error instanceof HttpCallError) return { kind: 'unknown', reason: error.reason };
      throw error;
    }
  }

  #call(call: HttpCall): Promise<HttpAnswer> {
    const headers = {
      'user-agent': `holdfast-cli/${userName()}`,
      ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
    };
    return this.#http.call({ ...call, headers });
  }
}

/** A fresh id for every transaction. */
export function newTransId(): string {
  return `holdfast-${randomUUID()}`;
}

/** The user of the command line, for the router's history. */
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
