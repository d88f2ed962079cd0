import { Agent } from 'undici';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';

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

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

const TIMEOUT_MS = 30_000;
const CONNECT_MS = 10_000;
const KEEP_ALIVE_MS = 4_000;
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
  readonly #agent: Agent;

  constructor(options: ExchangeOptions) {
    const { origin, pathname } = new URL(options.url);
    this.url = (origin + pathname).replace(/\/+$/, '');
    this.#options = options;
    this.#agent = new Agent({
      connections: CONNECTIONS,
      connect: { timeout: CONNECT_MS, ...(options.ca !== undefined && { ca: options.ca }) },
      keepAliveTimeout: KEEP_ALIVE_MS,
      // The deadline of the whole call is ours.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * @returns `result` of the store's envelope; undefined for a 404 of an optional call
   * @throws HF_MEMORY_UNREACHABLE, HF_MEMORY_REFUSED, HF_MEMORY_ANSWER
   * @throws HF_CONFIG_SECRET_* the key cannot be read; nothing was sent
   */
  async result(call: Call): Promise<unknown> {
    const { status, text } = await this.#patiently(call);
    if (status === 404 && call.optional) return undefined;
    const body = parsed(text);
    if (status < 200 || status > 299) {
      throw new HoldfastError('HF_MEMORY_REFUSED', {
        url: this.url,
        call: callText(call),
        status,
        text: errorText(body, text),
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
  async plain(call: Call): Promise<{ readonly status: number; readonly text: string }> {
    return this.#patiently(call);
  }

  garbled(call: Pick<Call, 'method' | 'path'>, reason: string): HoldfastError {
    return new HoldfastError('HF_MEMORY_ANSWER', { url: this.url, call: callText(call), reason });
  }

  close(): Promise<void> {
    return this.#agent.destroy();
  }

  async #patiently(call: Call): Promise<Answer> {
    const { clock } = this.#options;
    const over = new AbortController();
    const ms = call.timeoutMs ?? TIMEOUT_MS;
    const cancel = clock.after(ms, () => over.abort(new Error(`nothing came within ${ms / 1_000} s`)));
    const signal = call.signal ? AbortSignal.any([over.signal, call.signal]) : over.signal;
    try {
      for (let tried = 0; ; tried += 1) {
        const answer = await this.#once(call, signal);
        if (answer.status !== 429 || tried === RETRIES) return answer;
        const wait = waitOf(answer.retryAfter, clock.now());
        if (wait > LONGEST_WAIT_MS) return answer;
        await this.#wait(wait, signal);
      }
    } catch (error) {
      call.signal?.throwIfAborted();
      if (error instanceof HoldfastError) throw error;
      const reason = faultOf(over.signal.aborted ? over.signal.reason : error);
      throw new HoldfastError(
        'HF_MEMORY_UNREACHABLE',
        { url: this.url, call: callText(call), reason },
        { cause: error },
      );
    } finally {
      cancel();
    }
  }

  async #once({ method, path, body }: Call, signal: AbortSignal): Promise<Answer> {
    const key = await this.#options.apiKey(signal);
    const base = new URL(`${this.url}/${path}`);
    const {
      statusCode,
      headers,
      body: answer,
    } = await this.#agent.request({
      origin: base.origin,
      path: base.pathname + base.search,
      method,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(key !== undefined && { 'api-key': key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal,
    });
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of answer as AsyncIterable<Uint8Array>) {
      size += chunk.length;
      if (size > LARGEST_ANSWER)
        throw this.garbled({ method, path }, `it is larger than ${LARGEST_ANSWER} bytes`);
      chunks.push(chunk);
    }
    const retryAfter = headers['retry-after'];
    return {
      status: statusCode,
      retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
      text: Buffer.concat(chunks).toString('utf8'),
    };
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

function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'ECONNREFUSED') return 'nothing listens there (ECONNREFUSED)';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `its name cannot be resolved (${code})`;
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return `no connection within ${CONNECT_MS / 1_000} s`;
  return code === undefined ? error.message : `${error.message} (${code})`;
}
