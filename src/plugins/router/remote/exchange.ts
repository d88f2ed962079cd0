import { type Dispatcher, Pool } from 'undici';
import type { Clock } from '../../../core/kernel/clock.ts';

/** What came back, whole. */
export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** Why no whole answer came, as a part of a sentence; nothing that was posted is in it. */
export class NoAnswer extends Error {
  /** The connection was made, and ended before the answer did. */
  readonly broke: boolean;

  constructor(reason: string, broke = false) {
    super(reason);
    this.broke = broke;
  }
}

interface Request {
  readonly method: 'GET' | 'POST';
  /** Below the base, without a leading slash. */
  readonly path: string;
  readonly body?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

interface ExchangeOptions {
  readonly url: string;
  readonly clock: Clock;
  /** Read at each call. */
  readonly token: () => string | undefined;
  /** Bytes. */
  readonly answerLimit: number;
}

/** A connection that cannot be made within this time is none, whatever the call's own patience. */
const CONNECT_MS = 10_000;
const KEEP_ALIVE_MS = 4_000;
/** Writes follow one another, but a read must not wait behind one that takes eight seconds. */
const CONNECTIONS = 4;

/** HTTP with one router: connections are kept alive, redirects are never followed, answers are bounded. */
export class Exchange {
  readonly #pool: Dispatcher;
  readonly #base: string;
  readonly #options: ExchangeOptions;

  constructor(options: ExchangeOptions) {
    const { origin, pathname } = new URL(options.url);
    this.#options = options;
    this.#base = pathname.replace(/\/*$/, '/');
    this.#pool = new Pool(origin, {
      connections: CONNECTIONS,
      pipelining: 1,
      connect: { timeout: CONNECT_MS },
      keepAliveTimeout: KEEP_ALIVE_MS,
      // The deadline of the whole exchange is ours.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * One request, one whole answer.
   *
   * @throws NoAnswer nothing came in time, the connection broke, or the answer is too large
   * @throws HF_CONFIG_SECRET_* the token's file cannot be used; nothing was sent
   */
  async call({ method, path, body, timeoutMs, signal }: Request): Promise<HttpAnswer> {
    const { clock, token: readToken, answerLimit } = this.#options;
    const token = readToken();
    const over = new AbortController();
    const cancel = clock.after(timeoutMs, () =>
      over.abort(new NoAnswer(`nothing came within ${timeoutMs / 1_000} s`)),
    );
    const giveUp = () => over.abort(new NoAnswer('it was given up'));
    signal?.addEventListener('abort', giveUp, { once: true });
    if (signal?.aborted) giveUp();
    try {
      const answer = await this.#pool.request({
        method,
        path: this.#base + path,
        headers: {
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        ...(body !== undefined && { body }),
        signal: over.signal,
      });
      return { status: answer.statusCode, text: await textOf(answer.body, answerLimit) };
    } catch (error) {
      const reason = over.signal.aborted ? over.signal.reason : error;
      if (reason instanceof NoAnswer) throw reason;
      throw new NoAnswer(connectionFault(reason), BROKEN.includes(codeOf(reason)));
    } finally {
      cancel();
      signal?.removeEventListener('abort', giveUp);
    }
  }

  /** Breaks off what is under way. */
  close(): Promise<void> {
    return this.#pool.destroy();
  }
}

async function textOf(body: AsyncIterable<Uint8Array>, limit: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limit) throw new NoAnswer(`the answer is larger than ${limit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

const BROKEN: readonly unknown[] = ['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'];

function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
}

function connectionFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  if (code === 'ECONNREFUSED') return 'nothing listens there (ECONNREFUSED)';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `its name cannot be resolved (${code})`;
  if (code === 'UND_ERR_CONNECT_TIMEOUT') return `no connection within ${CONNECT_MS / 1_000} s`;
  if (BROKEN.includes(code)) return 'the connection broke off';
  return code === undefined ? error.message : `${error.message} (${code})`;
}
