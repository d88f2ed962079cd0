import type { NetworkConfig, RouterApi, SetAnswer } from '../../../core/contracts/router.ts';
import { type HttpAnswer, type HttpCall, HttpCallError, HttpClient } from '../../../core/host/http/client.ts';
import { maskText } from '../../../core/host/logging/mask-text.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { withoutControlFields } from '../config/network-config.ts';
import { RouterError } from '../errors.ts';

interface RemoteRouterOptions {
  readonly http: HttpClient;
  /** It is read at each call. @throws HF_CONFIG_SECRET_* its file cannot be used */
  readonly token: () => string | undefined;
  readonly readTimeoutMs: number;
  readonly writeTimeoutMs: number;
  readonly isSubscribed?: () => boolean;
  /** Called after each call; `fault` is why there was no usable answer. */
  readonly onCall: (call: 'read' | 'write', fault: string | undefined) => void;
}

/** Writes follow one another, but a read must not wait behind one that takes eight seconds. */
const CONNECTIONS = 4;
/** Each call brings its own deadline; without one it has that of a write. */
const DEADLINE_MS = 85_000;

/** The client by which a `RemoteRouter` calls. @param answerLimit bytes */
export function routerClient(base: string, answerLimit: number, clock: Clock): HttpClient {
  return new HttpClient({ base, timeoutMs: DEADLINE_MS, answerLimit, clock, connections: CONNECTIONS });
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

  isSubscribed(): boolean {
    return this.#options.isSubscribed?.() ?? false;
  }

  async active(signal?: AbortSignal): Promise<NetworkConfig> {
    const config = activeOf(await this.#read(signal));
    this.#options.onCall('read', typeof config === 'string' ? config : undefined);
    if (typeof config === 'string') throw new RouterError('HF_ROUTER_UNREACHABLE', { reason: config });
    return config;
  }

  async set(config: NetworkConfig, _correlation: string, signal?: AbortSignal): Promise<SetAnswer> {
    const body = withoutControlFields(config);
    // A body without an ncid would overwrite any config.
    if (typeof body.ncid !== 'string' || body.ncid === '')
      return { kind: 'refused', errors: ['the config bears no ncid, so it was not posted'] };
    if (signal?.aborted) return { kind: 'unknown', reason: 'it was given up before it was posted' };
    const answer = await this.#write(JSON.stringify(body), signal);
    this.#options.onCall('write', answer.kind === 'unknown' ? answer.reason : undefined);
    return answer;
  }

  async #read(signal: AbortSignal | undefined): Promise<HttpAnswer> {
    const { readTimeoutMs: timeoutMs, onCall } = this.#options;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#call({ url: '/v1/config/active', timeoutMs, signal });
      } catch (error) {
        const reason = faultOf(error, signal);
        if (reason === undefined) throw error;
        const isBroken = error instanceof HttpCallError && error.failure === 'broken';
        if (isBroken && tries < READ_TRIES) continue;
        onCall('read', reason);
        throw new RouterError('HF_ROUTER_UNREACHABLE', { reason }, { cause: error });
      }
    }
  }

  async #write(body: string, signal: AbortSignal | undefined): Promise<SetAnswer> {
    const { writeTimeoutMs: timeoutMs } = this.#options;
    const headers = { 'content-type': 'application/json' };
    try {
      return setAnswerOf(
        await this.#call({ method: 'POST', url: '/v1/config/set', headers, body, timeoutMs, signal }),
      );
    } catch (error) {
      const reason = faultOf(error, signal);
      if (reason !== undefined) return { kind: 'unknown', reason };
      // The token's file: nothing was sent.
      if (isCoded(error)) return { kind: 'refused', errors: [error.what] };
      throw error;
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

/** A router's error texts are shown to a person, and not parsed. */
const COMPLAINTS = 10;
const COMPLAINT_LENGTH = 300;

const NCID_MISMATCH = /ncid not match/i;
const TRANSACTION_PENDING = /transaction context is in progress/i;
/** 4xx codes that mean "not now" and not "never". */
const NOT_NOW: readonly number[] = [408, 425, 429];

/**
 * What an answer to `POST /v1/config/set` means. A 200 without a new ncid, a 5xx and any answer of a proxy prove neither
 * that the config was applied nor that it was not.
 */
export function setAnswerOf(answer: HttpAnswer): SetAnswer {
  const { status } = answer;
  const body = answer.json();
  const { errors, ncid, code } = isObject(body) ? body : {};
  const complaints = textsOf(errors);
  if (status === 200) {
    if (typeof ncid === 'string' && ncid !== '' && complaints.length === 0) return { kind: 'applied', ncid };
    return unknown(complaints.join('; ') || 'it answered 200 without the new ncid');
  }
  if (status < 400 || status >= 500 || NOT_NOW.includes(status))
    return unknown([`it answered ${status}`, ...complaints].join(': '));
  // The embedded router answers with a code, a real daemon with a text.
  if (code === 'HF_ROUTER_NCID_MISMATCH' || complaints.some((text) => NCID_MISMATCH.test(text)))
    return { kind: 'conflict' };
  if (code === 'HF_ROUTER_TRANSACTION_PENDING' || complaints.some((text) => TRANSACTION_PENDING.test(text)))
    return { kind: 'pending' };
  return { kind: 'refused', errors: complaints.length > 0 ? complaints : [explained(status)] };
}

/** The config in an answer to `GET /v1/config/active`, or why there is none. */
export function activeOf(answer: HttpAnswer): NetworkConfig | string {
  if (answer.status !== 200) return explained(answer.status);
  const body = answer.json();
  return isObject(body) ? body : 'it answered 200 with something that is no JSON object';
}

/** A description of an answer that has no text of its own. */
function explained(status: number): string {
  if (status >= 300 && status < 400)
    return `it answered ${status}, a redirect, which is never followed: name the router itself`;
  if (status === 401 || status === 403) return `it answered ${status}: it wants another token (tokenFile)`;
  if (status === 404) return 'it answered 404: there is no config API at this address';
  if (status === 413) return 'it answered 413: the config is larger than it takes';
  return `it answered ${status}`;
}

function textsOf(errors: unknown): string[] {
  if (!Array.isArray(errors)) return [];
  return errors.slice(0, COMPLAINTS).map((error) => maskText(String(error), COMPLAINT_LENGTH));
}

function unknown(reason: string): SetAnswer {
  return { kind: 'unknown', reason };
}
