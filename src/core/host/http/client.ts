import type { Agent } from 'undici';
import { type Clock, systemClock } from '../../kernel/clock.ts';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { nestsDeeper } from '../../kernel/json.ts';
import { unlessAborted } from '../deadline.ts';
import { HostError } from '../errors/host-error.ts';
import { withoutSecrets } from '../logging/mask-secrets.ts';
import { maskText, REDACTED } from '../logging/mask-text.ts';
import { placeOf } from './addresses.ts';
import { BodyTooLarge, readBody } from './bounded-body.ts';
import { Connections, type HttpHeaders, type ReceivedAnswer } from './connections.ts';
import { type HttpFailure, networkFailure } from './network-failure.ts';
import { carriesCredential, plaintextProblem } from './plaintext.ts';
import { dispatch, type HttpDispatcher, makePinningAgent } from './undici.ts';

/** Levels of JSON that an answer may have; deeper nesting serves only to exhaust a stack. */
const DEEPEST_JSON = 100;
const CONNECT_TIMEOUT_MS = 10_000;

const INVALID_URL = { failure: 'other', code: 'ERR_INVALID_URL', reason: 'its URL is not valid' } as const;

/** What all calls of a client have in common. */
export interface HttpClientOptions {
  /** Prefix of every call's URL: scheme, host, port, and a path where the server stands behind one; or `unix:<path of a socket>`. */
  readonly base?: string;
  /** The longest that a whole call may take, milliseconds: connecting and reading the answer included. */
  readonly timeoutMs: number;
  /** The longest answer, bytes. */
  readonly answerLimit: number;
  /** What happens to a longer answer: `refuse` fails the call, `cut` returns its beginning. `refuse` unless set. */
  readonly excess?: 'refuse' | 'cut';
  readonly clock?: Clock;
  /** The longest wait for a connection, milliseconds; 10,000 unless set. */
  readonly connectTimeoutMs?: number;
  /** Connections to one host at a time; unlimited unless set. */
  readonly connections?: number;
  /** PEM of the authority that signed the server's certificate; the system's authorities without it. */
  readonly ca?: string | undefined;
  /** Connects to this address in place of the URL's; the name in the URL stays that of certificate and Host header. */
  readonly connectTo?: { readonly host: string; readonly port?: number | undefined } | undefined;
  /** Whether a connection serves more than one call; true unless set. */
  readonly keepAlive?: boolean;
  /** Sends in place of connections of the client's own; the client doesn't close it. */
  readonly dispatcher?: HttpDispatcher | undefined;
  /** Fingerprint (SHA-256, `AB:CD:…`) of the only certificate that is trusted, whatever name and time it is for. */
  readonly pin?: string | undefined;
  /** Whether credentials may go to another machine in plaintext; not unless set. */
  readonly insecure?: boolean | undefined;
}

/** One call. */
export interface HttpCall {
  /** GET unless set. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Appended to the client's base; a whole URL where it has none. */
  readonly url: string;
  /** In place of the client's. */
  readonly base?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  /** Sent as the body, in JSON. */
  readonly json?: unknown;
  /** In place of the client's, milliseconds. */
  readonly timeoutMs?: number;
  /** The longest pause of an answer, milliseconds. */
  readonly idleTimeoutMs?: number;
  /** Gives the call up. */
  readonly signal?: AbortSignal | undefined;
  /** In place of the client's, for servers whose credentials come with an agent. */
  readonly dispatcher?: HttpDispatcher | undefined;
  /** In place of the client's. */
  readonly insecure?: boolean | undefined;
  readonly pin?: string | undefined;
  /** Where the credential is when no header has it, e.g. a token in the path. */
  readonly secretIn?: 'url' | 'body' | undefined;
}

/** An answer whose body has yet to be read. */
export interface HttpStream {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: HttpHeaders;
  readonly body: AsyncIterable<Uint8Array>;
}

/** A whole answer, whatever its status. */
export class HttpAnswer {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly bytes: Buffer;
  /** The answer was longer than its limit, and was cut there. */
  readonly truncated: boolean;

  constructor(status: number, headers: HttpHeaders, bytes: Buffer, truncated: boolean) {
    this.status = status;
    this.headers = headers;
    this.bytes = bytes;
    this.truncated = truncated;
  }

  /** Whether the status is one of success. A redirect is none: it is not followed. */
  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  /** @returns the first value of a header, by its name in lower case */
  header(name: string): string | undefined {
    const value = this.headers[name];
    return Array.isArray(value) ? value[0] : value;
  }

  text(): string {
    return this.bytes.toString('utf8');
  }

  /** @returns undefined where the body is no JSON, or is nested deeper than 100 levels */
  json(): unknown {
    const text = this.text();
    if (nestsDeeper(text, DEEPEST_JSON)) return undefined;
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  /**
   * The body as text, without the given secrets (see `withoutSecrets`). Where the answer was cut, its end may hold the beginning of a secret,
   * which is removed too.
   *
   * @param secrets what the call itself sent and the server may have repeated; none of them empty
   * @param mark stands in place of each secret
   */
  textWithout(secrets: readonly string[], mark = REDACTED): string {
    const text = secrets.reduce((rest, secret) => rest.replaceAll(secret, mark), this.text());
    if (!this.truncated) return withoutSecrets(text, secrets, mark);
    // The cut may have split a character, which is shown as U+FFFD.
    const whole = text.replace(/\uFFFD$/, '');
    const partial = Math.max(0, ...secrets.map((secret) => beginningAtEnd(whole, secret)));
    return withoutSecrets(whole.slice(0, whole.length - partial), secrets, mark);
  }

  /**
   * What the server said, fit for an error or a log line: one line, secrets masked.
   *
   * @param limit characters
   * @param secrets what the call itself sent and the server may have repeated
   */
  excerpt(limit: number, ...secrets: readonly string[]): string {
    const clean = this.textWithout(secrets);
    return maskText(clean.replace(/[\s\p{C}]+/gu, ' ').trim(), limit);
  }
}

/** @returns how many characters at the end of a text are the beginning of a secret */
function beginningAtEnd(text: string, secret: string): number {
  for (let length = Math.min(text.length, secret.length - 1); length > 0; length -= 1) {
    if (text.endsWith(secret.slice(0, length))) return length;
  }
  return 0;
}

/**
 * No whole answer came. Its text names the server and the reason, and nothing else of what was sent or received: no path,
 * no query, no message of the network, which may quote either.
 */
export class HttpCallError extends HostError {
  readonly failure: HttpFailure;
  /** A part of a sentence. */
  readonly reason: string;
  /** Code of Node or undici, e.g. `ECONNREFUSED`; `TIMEOUT` of the call's own deadline, `TOO_LARGE` of its limit. */
  readonly networkCode: string;

  constructor(place: string, method: string, { failure, reason, code }: ReturnType<typeof networkFailure>) {
    super('HF_HTTP_CALL', { method, place, reason });
    this.failure = failure;
    this.reason = reason;
    this.networkCode = code;
  }
}

/**
 * HTTP with other programs: each call has a deadline and a limit for its answer, redirects are never followed, and errors
 * repeat no secret.
 *
 * @example
 * const http = new HttpClient({ base: 'https://ui.example', timeoutMs: 10_000, answerLimit: 65_536 });
 * const answer = await http.call({ method: 'POST', url: '/api/alerts', json: alert, signal });
 */
export class HttpClient {
  readonly #options: HttpClientOptions;
  readonly #connections: Connections;
  /** By the certificate that each trusts. */
  readonly #pinned = new Map<string, Promise<Agent>>();

  constructor(options: HttpClientOptions) {
    const { connectTimeoutMs = CONNECT_TIMEOUT_MS, keepAlive = true } = options;
    this.#options = options;
    this.#connections = new Connections({ ...options, connectTimeoutMs, keepAlive });
  }

  /**
   * One request, one whole answer of whatever status.
   *
   * @throws HF_HTTP_CALL (as HttpCallError) the URL is not valid, a credential would leave this machine in plaintext, no
   *   whole answer came in time, or it is too long
   * @throws the reason of `signal`, when that gave the call up
   */
  call(call: HttpCall): Promise<HttpAnswer> {
    const { answerLimit, excess } = this.#options;
    return this.stream(call, async ({ status, headers, body }) => {
      const { bytes, truncated } = await readBody(body, answerLimit, { excess });
      return new HttpAnswer(status, headers, bytes, truncated);
    });
  }

  /**
   * One request, whose answer is read as it comes. The deadline covers reading; what is left unread is discarded.
   *
   * @param read its coded errors are passed on; the limit of the answer is its own to keep
   * @throws as `call`
   */
  async stream<T>(call: HttpCall, read: (answer: HttpStream, signal: AbortSignal) => Promise<T>): Promise<T> {
    const { clock = systemClock, connectTimeoutMs = CONNECT_TIMEOUT_MS } = this.#options;
    const { signal, timeoutMs = this.#options.timeoutMs, method = 'GET' } = call;
    signal?.throwIfAborted();
    const base = call.base ?? this.#options.base ?? '';
    const { socketPath, root } = placeOf(base === '' ? call.url : base);
    const url = URL.parse(base === '' ? root : `${root}${call.url}`);
    if (!url) throw new HttpCallError('(a URL that is not valid)', method, INVALID_URL);
    this.#refusePlaintext(url, method, call);
    const over = new AbortController();
    const cancel = clock.after(timeoutMs, () => over.abort());
    const giveUp = () => over.abort();
    signal?.addEventListener('abort', giveUp, { once: true });
    let answer: ReceivedAnswer | undefined;
    try {
      const sending = this.#send({ url, socketPath }, method, call, over.signal);
      // undici heeds a signal only once the request has a connection, but neither connecting nor waiting for a connection
      // of the pool may outlast the call.
      answer = await unlessAborted(sending, over.signal, () => discardLate(sending));
      return await read(answer, over.signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (isCoded(error)) throw error;
      const cause = over.signal.aborted ? new DeadlinePassed(timeoutMs) : error;
      const place = socketPath === undefined ? url.origin : `unix:${socketPath}`;
      throw new HttpCallError(place, method, failureOf(cause, connectTimeoutMs));
    } finally {
      cancel();
      signal?.removeEventListener('abort', giveUp);
      answer?.discard();
    }
  }

  /** Breaks off what is under way. */
  async close(): Promise<void> {
    this.#connections.close();
    const agents = [...this.#pinned.values()];
    this.#pinned.clear();
    await Promise.all(agents.map(async (agent) => (await agent).destroy()));
  }

  /** Nothing was sent when it throws. */
  #refusePlaintext({ href, origin }: URL, method: string, call: HttpCall): void {
    const { headers = {}, secretIn, insecure = this.#options.insecure } = call;
    if (secretIn === undefined && !carriesCredential(headers)) return;
    const connectTo = this.#options.connectTo?.host;
    const reason = plaintextProblem({ url: href, connectTo, insecure, credential: 'a credential' });
    if (reason !== undefined)
      throw new HttpCallError(origin, method, { failure: 'other', code: 'PLAINTEXT', reason });
  }

  async #send(
    { url, socketPath }: { readonly url: URL; readonly socketPath: string | undefined },
    method: NonNullable<HttpCall['method']>,
    call: HttpCall,
    signal: AbortSignal,
  ): Promise<ReceivedAnswer> {
    const body = call.json === undefined ? call.body : JSON.stringify(call.json);
    const headers = {
      ...(call.json !== undefined && { 'content-type': 'application/json' }),
      ...call.headers,
    };
    const { idleTimeoutMs, pin = this.#options.pin } = call;
    const request = { url, socketPath, method, headers, signal, idleTimeoutMs, body };
    if (socketPath !== undefined) return this.#connections.send(request);
    const given = call.dispatcher ?? this.#options.dispatcher;
    if (!given && pin === undefined) return this.#connections.send(request);
    const { keepAlive = true } = this.#options;
    return dispatch(given ?? (await this.#agentFor(pin)), { ...request, reset: !keepAlive });
  }

  #agentFor(pin = ''): Promise<Agent> {
    const agent =
      this.#pinned.get(pin) ??
      makePinningAgent({ connectTimeoutMs: CONNECT_TIMEOUT_MS, ...this.#options, pin });
    this.#pinned.set(pin, agent);
    return agent;
  }
}

/** An answer that comes when nobody waits for it any more. */
function discardLate(sending: Promise<ReceivedAnswer>): void {
  sending.then(
    (answer) => answer.discard(),
    () => {},
  );
}

/** The deadline of the call has passed. */
class DeadlinePassed extends Error {
  readonly ms: number;

  constructor(ms: number) {
    super();
    this.ms = ms;
  }
}

function failureOf(error: unknown, connectTimeoutMs: number) {
  if (error instanceof DeadlinePassed) {
    return {
      failure: 'timeout',
      code: 'TIMEOUT',
      reason: `nothing came within ${error.ms / 1_000} s`,
    } as const;
  }
  if (error instanceof BodyTooLarge) {
    const reason = `the answer is larger than ${error.limit} bytes`;
    return { failure: 'too_large', code: 'TOO_LARGE', reason } as const;
  }
  return networkFailure(error, connectTimeoutMs);
}
