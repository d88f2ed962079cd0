import { createHash, randomUUID } from 'node:crypto';
import type {
  InterfaceView,
  NetworkConfig,
  ReapplyAnswer,
  RouterApi,
  SetAnswer,
  WriteFence,
  WriteOrigin,
} from '../../../core/contracts/router.ts';
import {
  type HttpAnswer,
  type HttpCall,
  HttpCallError,
  HttpClient,
  type HttpClientOptions,
} from '../../../core/host/http/client.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { withoutControlFields } from '../config/network-config.ts';
import { RouterError } from '../errors.ts';
import { fenceHeaders } from '../fence.ts';
import { activeOf, interfaceOf, isTransactionPending, reapplyAnswerOf, setAnswerOf } from './answers.ts';

interface RemoteRouterOptions {
  readonly url: string;
  readonly http: HttpClient;
  /** It is read at each call. @throws HF_CONFIG_SECRET_* its file cannot be used */
  readonly token: () => string | undefined;
  readonly readTimeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly isSubscribed?: () => boolean;
  /** Called after each call; `fault` is why there was no usable answer. */
  readonly onCall: (call: 'read' | 'write', fault: string | undefined) => void;
  readonly observer?: ApiObserver;
  /** Gets each config that was read. */
  readonly onConfig?: (config: NetworkConfig) => void;
}

/** Is told what the calls show of the router itself. */
export interface ApiObserver {
  /** @param digest of the active config, where it was read */
  answered(digest?: string): void;
  /** No usable answer came. */
  failed(reason: string): void;
  /** A connection of an earlier call had been closed by the router. */
  broken(): void;
  /** The router accepted a write of ours. */
  written(): void;
}

interface ReadOptions {
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs?: number | undefined;
  readonly observer?: ApiObserver | undefined;
}

interface WriteOptions {
  readonly signal: AbortSignal | undefined;
  readonly fence?: WriteFence | undefined;
}

/** Writes follow one another, but a read must not wait behind one that takes eight seconds. */
const CONNECTIONS = 4;
/** Each call brings its own deadline; without one it has that of a write. */
const DEADLINE_MS = 85_000;

/** The client by which a `RemoteRouter` calls. */
export function routerClient(
  base: string,
  options: Pick<HttpClientOptions, 'answerLimit' | 'clock' | 'insecure'>,
): HttpClient {
  return new HttpClient({ base, timeoutMs: DEADLINE_MS, connections: CONNECTIONS, ...options });
}

/** A read is repeated once when its connection broke: the router may just have closed it. */
const READ_TRIES = 2;

/**
 * The config API of a router elsewhere, over HTTP. Only answers in the router's own format count. Any other end of a
 * write is `unknown`, and the writer reads again.
 */
export class RemoteRouter implements RouterApi {
  readonly #options: RemoteRouterOptions;

  constructor(options: RemoteRouterOptions) {
    this.#options = options;
  }

  get place(): string {
    return this.#options.url;
  }

  isSubscribed(): boolean {
    return this.#options.isSubscribed?.() ?? false;
  }

  /** @param timeoutMs in place of that of a read */
  async active(signal?: AbortSignal, timeoutMs?: number): Promise<NetworkConfig> {
    const { observer } = this.#options;
    const answer = await this.#read('/v1/config/active', { signal, timeoutMs, observer });
    const config = this.#usable(activeOf(answer), observer);
    // The rest of a config may change at each reading, and nothing that is held there depends on it.
    const { ncid, interface: interfaces } = config;
    observer?.answered(
      createHash('sha256')
        .update(JSON.stringify([ncid, interfaces]))
        .digest('base64'),
    );
    this.#options.onConfig?.(config);
    return config;
  }

  /** Not every router serves this route well, so its answers show nothing of the API as a whole. */
  async interfaceState(intf: string, signal?: AbortSignal): Promise<InterfaceView | undefined> {
    const answer = await this.#read(`/v1/config/interfaces/${encodeURIComponent(intf)}`, { signal });
    return answer.status === 404 ? undefined : this.#usable(interfaceOf(answer));
  }

  async set(
    config: NetworkConfig,
    _correlation: string,
    signal?: AbortSignal,
    { fence }: WriteOrigin = {},
  ): Promise<SetAnswer> {
    const body = withoutControlFields(config);
    // A body without an ncid would overwrite any config.
    if (typeof body.ncid !== 'string' || body.ncid === '')
      return { kind: 'refused', errors: ['the config bears no ncid, so it was not posted'] };
    const answer = await this.#write('/v1/config/set', body, { signal, fence }, setAnswerOf);
    if (answer.kind === 'applied') this.#options.observer?.written();
    return answer;
  }

  async reapply(
    _correlation: string,
    signal?: AbortSignal,
    { fence }: WriteOrigin = {},
  ): Promise<ReapplyAnswer> {
    // Nobody has this transID, and no config this ncid: a router takes neither, and says whether one is pending.
    const transID = randomUUID();
    const question = { transactionOp: 'commit', transID, ncid: transID };
    const pending = await this.#write('/v1/config/set', question, { signal }, isTransactionPending);
    if (pending === true) return { kind: 'pending' };
    if (pending === false)
      return this.#write('/v1/config/apply_current_config', {}, { signal, fence }, reapplyAnswerOf);
    const reason = typeof pending === 'object' && 'reason' in pending ? `: ${pending.reason}` : '';
    return { kind: 'unknown', reason: `it does not say whether a transaction is pending${reason}` };
  }

  /** Reports a read. @throws HF_ROUTER_UNREACHABLE the answer was none: `found` is the reason */
  #usable<T extends object>(found: T | string, observer?: ApiObserver): T {
    const { onCall } = this.#options;
    if (typeof found !== 'string') {
      onCall('read', undefined);
      return found;
    }
    onCall('read', found);
    observer?.failed(found);
    throw new RouterError('HF_ROUTER_UNREACHABLE', { reason: found });
  }

  async #read(url: string, { signal, timeoutMs, observer }: ReadOptions): Promise<HttpAnswer> {
    const { readTimeoutMs, onCall } = this.#options;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#call({ url, timeoutMs: timeoutMs ?? readTimeoutMs, signal });
      } catch (error) {
        const reason = faultOf(error, signal);
        if (reason === undefined) throw error;
        const isBroken = error instanceof HttpCallError && error.failure === 'broken';
        if (isBroken) observer?.broken();
        if (isBroken && tries < READ_TRIES) continue;
        onCall('read', reason);
        if (error instanceof HttpCallError) observer?.failed(reason);
        throw new RouterError('HF_ROUTER_UNREACHABLE', { reason }, { cause: error });
      }
    }
  }

  /** @returns `unknown` or `refused` when there was no whole answer to understand */
  async #write<T>(
    url: string,
    body: object,
    { signal, fence }: WriteOptions,
    understood: (answer: HttpAnswer) => T,
  ): Promise<T | Extract<SetAnswer, { kind: 'unknown' | 'refused' }>> {
    const { writeTimeoutMs: timeoutMs, onCall, observer } = this.#options;
    if (signal?.aborted) return { kind: 'unknown', reason: 'it was given up before it was posted' };
    const headers = { 'content-type': 'application/json', ...fenceHeaders(fence) };
    const call = { method: 'POST', url, headers, body: JSON.stringify(body), timeoutMs, signal } as const;
    try {
      const answer = understood(await this.#call(call));
      const doubt = unknownReason(answer);
      onCall('write', doubt);
      // A 5xx to a write proves neither that the router is well nor that it is away: reads tell.
      if (doubt === undefined) observer?.answered();
      return answer;
    } catch (error) {
      const reason = faultOf(error, signal);
      // The token's file: nothing was sent.
      if (reason === undefined && isCoded(error)) return { kind: 'refused', errors: [error.what] };
      if (reason === undefined) throw error;
      onCall('write', reason);
      if (error instanceof HttpCallError) observer?.failed(reason);
      return { kind: 'unknown', reason };
    }
  }

  #call(call: HttpCall): Promise<HttpAnswer> {
    const { http, token: readToken } = this.#options;
    const token = readToken();
    const headers = {
      accept: 'application/json',
      ...call.headers,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    return http.call({ ...call, headers });
  }
}

/** @returns why no whole answer came, as a part of a sentence; undefined of other errors */
function faultOf(error: unknown, signal: AbortSignal | undefined): string | undefined {
  if (error instanceof HttpCallError) return error.reason;
  return signal?.aborted ? 'it was given up' : undefined;
}

function unknownReason(answer: unknown): string | undefined {
  return isObject(answer) && answer.kind === 'unknown' ? String(answer.reason) : undefined;
}
