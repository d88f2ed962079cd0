import { type HttpAnswer, HttpCallError, HttpClient } from '../../core/host/http/client.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import { MemoryError } from './errors.ts';

export interface ExchangeOptions {
  /** Scheme, host, port, and a path where the store stands behind one. */
  readonly url: string;
  readonly clock: Clock;
  /** Read at each call; undefined sends none. */
  readonly apiKey: (signal: AbortSignal) => Promise<string | undefined>;
  /** PEM of the authority that signed the store's certificate; the system's authorities without it. */
  readonly ca?: string | undefined;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the base, without a leading slash. */
  readonly path: string;
  readonly body?: unknown;
  /** Milliseconds for the whole call, retries included. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** A 404 is an answer: undefined. */
  readonly optional?: boolean;
}

const TIMEOUT_MS = 30_000;
const CONNECTIONS = 4;
const LARGEST_ANSWER = 64 * 1024 * 1024;
const LARGEST_TEXT = 300;
/** Of a 429: so many times it is tried again, and no longer is waited for than this. */
const RETRIES = 4;
const LONGEST_WAIT_MS = 15_000;

/** HTTP with one memory store: deadlines, bounded answers, no redirects, a 429 tried again when it says. */
export class Exchange {
  /** Without credentials. */
  readonly url: string;
  readonly #options: ExchangeOptions;
  readonly #http: HttpClient;

  constructor(options: ExchangeOptions) {
    const { origin, pathname } = new URL(options.url);
    this.url = (origin + pathname).replace(/\/+$/, '');
    this.#options = options;
    const { clock, ca } = options;
    this.#http = new HttpClient({
      base: this.url,
      timeoutMs: TIMEOUT_MS,
      answerLimit: LARGEST_ANSWER,
      connections: CONNECTIONS,
      clock,
      ca,
    });
  }

  /**
   * @returns `result` of the store's envelope; undefined for a 404 of an optional call
   * @throws HF_MEMORY_UNREACHABLE, HF_MEMORY_REFUSED, HF_MEMORY_ANSWER
   * @throws HF_CONFIG_SECRET_* the key cannot be read; nothing was sent
   */
  async result(call: Call): Promise<unknown> {
    const answer = await this.#patiently(call);
    const { status } = answer;
    if (status === 404 && call.optional) return undefined;
    const body = parsed(answer.text());
    if (!answer.ok) {
      throw new MemoryError('HF_MEMORY_REFUSED', {
        url: this.url,
        call: callText(call),
        status,
        text: errorText(body, answer.text()),
      });
    }
    if (!isObject(body) || !('result' in body) || body.status !== 'ok') {
      throw this.garbled(
        call,
        body === undefined ? 'it is not JSON' : 'it is no envelope with status ok and a result',
      );
    }
    return body.result;
  }

  /** A call whose answer has no envelope. */
  plain(call: Call): Promise<HttpAnswer> {
    return this.#patiently(call);
  }

  garbled(call: Pick<Call, 'method' | 'path'>, reason: string): HoldfastError {
    return new MemoryError('HF_MEMORY_ANSWER', { url: this.url, call: callText(call), reason });
  }

  close(): Promise<void> {
    return this.#http.close();
  }

  async #patiently(call: Call): Promise<HttpAnswer> {
    const { clock } = this.#options;
    const over = new AbortController();
    const ms = call.timeoutMs ?? TIMEOUT_MS;
    const cancel = clock.after(ms, () => over.abort());
    const signal = call.signal ? AbortSignal.any([over.signal, call.signal]) : over.signal;
    try {
      for (let tried = 0; ; tried += 1) {
        const answer = await this.#once(call, ms, signal);
        if (answer.status !== 429 || tried === RETRIES) return answer;
        const wait = waitOf(answer.header('retry-after'), clock.now());
        if (wait > LONGEST_WAIT_MS) return answer;
        await this.#wait(wait, signal);
      }
    } catch (error) {
      call.signal?.throwIfAborted();
      if (!over.signal.aborted && !(error instanceof HttpCallError)) throw error;
      if (error instanceof HttpCallError && error.failure === 'too_large') {
        throw this.garbled(call, error.reason);
      }
      const reason = error instanceof HttpCallError ? error.reason : `nothing came within ${ms / 1_000} s`;
      throw new MemoryError(
        'HF_MEMORY_UNREACHABLE',
        { url: this.url, call: callText(call), reason },
        { cause: error },
      );
    } finally {
      cancel();
    }
  }

  async #once({ method, path, body }: Call, timeoutMs: number, signal: AbortSignal): Promise<HttpAnswer> {
    const key = await this.#options.apiKey(signal);
    const headers = { accept: 'application/json', ...(key !== undefined && { 'api-key': key }) };
    return this.#http.call({ method, url: `/${path}`, headers, json: body, timeoutMs, signal });
  }

  #wait(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(ms, resolve);
    const give = () => {
      cancel();
      reject(signal.reason);
    };
    signal.addEventListener('abort', give, { once: true });
    return promise.finally(() => signal.removeEventListener('abort', give));
  }
}

/** Seconds, or a date; a second where nothing usable is said. */
function waitOf(retryAfter: string | undefined, now: number): number {
  if (retryAfter === undefined) return 1_000;
  if (/^\d{1,9}$/.test(retryAfter.trim())) return Number(retryAfter) * 1_000;
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? 1_000 : Math.max(0, at - now);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The store's own words, whatever shape they come in. */
function errorText(body: unknown, text: string): string {
  const status = isObject(body) ? body.status : undefined;
  const own = isObject(status) && typeof status.error === 'string' ? status.error : text;
  return own.trim() === '' ? '(it says nothing)' : maskText(own.trim(), LARGEST_TEXT);
}

const callText = ({ method, path }: Pick<Call, 'method' | 'path'>): string =>
  `${method} /${path.split('?', 1)[0]}`;
