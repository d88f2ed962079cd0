import { originOf } from '../../core/host/http/addresses.ts';
import { readBody } from '../../core/host/http/bounded-body.ts';
import { type HttpAnswer, HttpCallError, HttpClient, type HttpStream } from '../../core/host/http/client.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { HoldfastError } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import { MemoryError } from './errors.ts';

export interface RestClientOptions {
  /** Scheme, host, port, and a path if a proxy serves the store under one. */
  readonly url: string;
  readonly clock: Clock;
  /** Read at each call; undefined sends none. */
  readonly apiKey: (signal: AbortSignal) => Promise<string | undefined>;
  /** PEM of the authority that signed the store's certificate; the system's authorities without it. */
  readonly ca?: string | undefined;
  /** Fingerprint of the only certificate that is trusted. */
  readonly pin?: string | undefined;
  /** Whether the key may go to another machine in plaintext. */
  readonly insecure?: boolean | undefined;
}

export interface RestCall {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the base, without a leading slash. */
  readonly path: string;
  readonly body?: unknown;
  /** Milliseconds for the whole call, retries included. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** A 404 is not an error: the result is undefined. */
  readonly optional?: boolean;
}

const TIMEOUT_MS = 30_000;
const CONNECTIONS = 4;
const LARGEST_ANSWER = 64 * 1024 * 1024;
const LONGEST_REFUSAL = 64 * 1024;
/** Characters of the store's own text in an error. */
const LONGEST_TEXT = 300;
/** How many times a call that is answered with 429 is repeated. */
const RETRIES = 4;
/** A call is not repeated after a longer wait than this. */
const LONGEST_WAIT_MS = 15_000;

/** Calls one memory store, and repeats a call that is answered with 429 after the time that the answer names. */
export class RestClient {
  /** Without credentials. */
  readonly url: string;
  readonly #options: RestClientOptions;
  readonly #http: HttpClient;

  constructor(options: RestClientOptions) {
    const url = new URL(options.url);
    this.url = (originOf(url) + url.pathname).replace(/\/+$/, '');
    this.#options = options;
    this.#http = new HttpClient({
      base: this.url,
      timeoutMs: TIMEOUT_MS,
      answerLimit: LARGEST_ANSWER,
      connections: CONNECTIONS,
      clock: options.clock,
      ca: options.ca,
      pin: options.pin,
      insecure: options.insecure,
    });
  }

  /**
   * @returns `result` of the store's envelope; undefined for a 404 of an optional call
   * @throws HF_MEMORY_UNREACHABLE, HF_MEMORY_REFUSED, HF_MEMORY_ANSWER
   * @throws HF_CONFIG_SECRET_* the key cannot be read; nothing was sent
   */
  async result(call: RestCall): Promise<unknown> {
    const answer = await this.answer(call);
    if (answer.status === 404 && call.optional) return undefined;
    const body = parsed(answer.text());
    if (!answer.ok) throw this.#refusal(call, answer.status, body, answer.text());
    if (!isObject(body) || !('result' in body) || body.status !== 'ok') {
      const reason = isObject(body) ? 'it is no envelope with status ok and a result' : 'it is not JSON';
      throw this.unexpected(call, reason);
    }
    return body.result;
  }

  /** The whole answer, for calls whose answer has no envelope. @throws HF_MEMORY_UNREACHABLE, HF_MEMORY_ANSWER */
  async answer(call: RestCall): Promise<HttpAnswer> {
    const { clock } = this.#options;
    const { method, path, body, signal, timeoutMs = TIMEOUT_MS } = call;
    const end = clock.monotonic() + timeoutMs;
    for (let retries = 0; ; retries += 1) {
      const key = await this.#options.apiKey(signal ?? AbortSignal.timeout(timeoutMs));
      const answer = await this.#http
        .call({
          method,
          url: `/${path}`,
          headers: { accept: 'application/json', ...(key !== undefined && { 'api-key': key }) },
          ...(body !== undefined && { json: body }),
          timeoutMs: Math.max(1, end - clock.monotonic()),
          signal,
        })
        .catch((error: unknown) => {
          throw this.#failure(call, error);
        });
      if (answer.status !== 429 || retries === RETRIES) return answer;
      const wait = retryDelay(answer.header('retry-after'), clock.now());
      if (wait > LONGEST_WAIT_MS || clock.monotonic() + wait > end) return answer;
      await this.#wait(wait, signal);
    }
  }

  /**
   * Reads an answer that is no JSON, of any length, as it comes.
   *
   * @param take gets each part of it, in order; the next one comes when its promise is settled
   * @throws HF_MEMORY_UNREACHABLE, HF_MEMORY_REFUSED, HF_MEMORY_ANSWER it is shorter than it announced
   */
  async read(call: RestCall, take: (chunk: Uint8Array) => void | Promise<void>): Promise<void> {
    const { method, path, signal, timeoutMs = TIMEOUT_MS } = call;
    const key = await this.#options.apiKey(signal ?? AbortSignal.timeout(timeoutMs));
    const headers = { ...(key !== undefined && { 'api-key': key }) };
    const reading = async ({ status, headers: { 'content-length': announced }, body }: HttpStream) => {
      if (status !== 200) {
        const { bytes } = await readBody(body, LONGEST_REFUSAL, { excess: 'cut' });
        const text = Buffer.from(bytes).toString('utf8');
        throw this.#refusal(call, status, parsed(text), text);
      }
      let size = 0;
      for await (const chunk of body) {
        size += chunk.length;
        await take(chunk);
      }
      if (announced !== undefined && size !== Number(announced))
        throw this.unexpected(call, `it has ${size} bytes of ${announced}`);
    };
    const request = { method, url: `/${path}`, headers, timeoutMs, idleTimeoutMs: TIMEOUT_MS, signal };
    await this.#http.stream(request, reading).catch((error: unknown) => {
      throw this.#failure(call, error);
    });
  }

  /**
   * Reads an answer of JSON lines, one after the other.
   *
   * @throws HF_MEMORY_UNREACHABLE, HF_MEMORY_REFUSED, HF_MEMORY_ANSWER a line is no JSON or too long
   */
  async *lines(call: RestCall): AsyncGenerator<unknown> {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    const ignore = () => {};
    const reading = this.read(call, (chunk) => writer.write(chunk)).then(
      () => writer.close(),
      (error: unknown) => writer.abort(error),
    );
    reading.catch(ignore); // its error is the readable's too
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of readable) {
      const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
      rest += first;
      if (rest.length > LARGEST_ANSWER)
        throw this.unexpected(call, `a line is longer than ${LARGEST_ANSWER} bytes`);
      for (const next of others) {
        const value = parsed(rest);
        if (value === undefined) throw this.unexpected(call, 'a line is not JSON');
        yield value;
        rest = next;
      }
    }
    if (rest !== '') throw this.unexpected(call, 'its last line is cut short');
  }

  /** An answer that the store should not give. */
  unexpected(call: Pick<RestCall, 'method' | 'path'>, reason: string): HoldfastError {
    return new MemoryError('HF_MEMORY_ANSWER', { url: this.url, call: callText(call), reason });
  }

  close(): Promise<void> {
    return this.#http.close();
  }

  #refusal(call: RestCall, status: number, body: unknown, text: string): HoldfastError {
    const details = { url: this.url, call: callText(call), status, text: errorText(body, text) };
    return new MemoryError('HF_MEMORY_REFUSED', details);
  }

  #failure(call: RestCall, error: unknown): unknown {
    if (!(error instanceof HttpCallError)) return error;
    if (error.failure === 'too_large')
      return this.unexpected(call, `it is larger than ${LARGEST_ANSWER} bytes`);
    const details = { url: this.url, call: callText(call), reason: error.reason };
    return new MemoryError('HF_MEMORY_UNREACHABLE', details, { cause: error });
  }

  #wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(ms, resolve);
    const abort = () => {
      cancel();
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
    return promise.finally(() => signal?.removeEventListener('abort', abort));
  }
}

/** The wait that a header Retry-After requires (seconds or a date), in milliseconds; one second where it is unusable. */
function retryDelay(retryAfter: string | undefined, now: number): number {
  if (retryAfter === undefined) return 1_000;
  if (/^\d{1,9}$/.test(retryAfter.trim())) return Number(retryAfter) * 1_000;
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? 1_000 : Math.max(0, at - now);
}

/** Parses without the client's limit of depth, because payloads may be nested deeper than other answers. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text with which the store explains an error, whatever shape it has. */
function errorText(body: unknown, text: string): string {
  const status = isObject(body) ? body.status : undefined;
  const own = isObject(status) && typeof status.error === 'string' ? status.error : text;
  return own.trim() === '' ? '(no text)' : maskText(own.trim(), LONGEST_TEXT);
}

const callText = ({ method, path }: Pick<RestCall, 'method' | 'path'>): string =>
  `${method} /${path.split('?', 1)[0]}`;
