import { once } from 'node:events';
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { hasUnreadBody } from '../../core/host/http/requests.ts';
import type { Answer } from './mcp/json-rpc.ts';
import type { CallFacts } from './telemetry/call-facts.ts';

/** One request of a client and the way to answer it, whole or as a stream. */
export interface Exchange {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: IncomingHttpHeaders;
  readonly correlation: string;
  /** Whether the client left before its answer was whole. */
  readonly hasLeft: boolean;
  /** Whether the client has yet to read what was sent. */
  readonly isBehind: boolean;
  /** Whether a part of the answer was sent. */
  readonly begun: boolean;
  /** Status that was sent; undefined before. */
  readonly status: number | undefined;
  /** Bytes of the answer's body so far. */
  readonly bytes: number;
  /** Milliseconds since the request came. */
  readonly ms: number;
  /** What telemetry reports of it at its end, filled in as it becomes known. */
  readonly facts: { -readonly [K in 'outcome' | 'tool']?: CallFacts[K] };
  /** Calls back once when the answer is whole, or the client gone. @returns does not call back any more */
  onClose(listener: () => void): () => void;
  /** Called when the request is admitted: its answer may take long. @param signal aborted when the call must not go on */
  admitted(signal: AbortSignal): void;
  /** Sends a whole answer, unless one has begun. */
  send(answer: Answer): void;
  /** Begins an answer that comes in parts. */
  begin(status: number, headers: Readonly<Record<string, string>>): void;
  /** Sends what has begun although no part of the body is there yet. */
  flush(): void;
  /**
   * Sends a part.
   *
   * @returns when a slow client has caught up; rejects when it leaves or the call must not go on. It may be ignored
   */
  write(chunk: Buffer | string): Promise<void> | undefined;
  end(last?: Buffer | string): void;
  /** Breaks an answer off: the client sees that it is not whole. */
  cut(): void;
  /** Breaks an answer off, and takes back what was sent and has not reached the client's machine. */
  reset(): void;
}

/**
 * An exchange over HTTP, from its request's head on. It answers past the framework, for its answer may be a stream that
 * goes on for hours: the handler hijacks the reply.
 */
export class HttpExchange implements Exchange {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: IncomingHttpHeaders;
  readonly correlation: string;
  /** Address of the caller. */
  readonly source: string;
  readonly facts: Exchange['facts'] = {};
  /** Path and query, and all headers, as they came: only for the search for misplaced keys. */
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly #response: ServerResponse;
  /** Has the headers that every answer of the surface has. */
  readonly #reply: FastifyReply;
  /** Aborted when the admitted call must not go on. */
  #signal: AbortSignal | undefined;
  #onClose: (() => void)[] = [];
  readonly #startedAt = performance.now();
  #bytes = 0;
  #drained: Promise<void> | undefined;

  constructor({ raw, id }: FastifyRequest, reply: FastifyReply) {
    const { raw: response } = reply;
    this.method = raw.method as 'GET' | 'POST' | 'DELETE';
    this.headers = raw.headers;
    this.url = raw.url ?? '';
    this.rawHeaders = raw.rawHeaders;
    this.correlation = id;
    this.source = raw.socket.remoteAddress ?? '';
    this.#response = response;
    this.#reply = reply;
    response.on('close', () => {
      const listeners = this.#onClose;
      this.#onClose = [];
      for (const listener of listeners) listener();
    });
  }

  get hasLeft(): boolean {
    return this.#response.closed && !this.#response.writableFinished;
  }

  get isBehind(): boolean {
    return this.#response.writableNeedDrain;
  }

  get begun(): boolean {
    return this.#response.headersSent;
  }

  get status(): number | undefined {
    return this.begun ? this.#response.statusCode : undefined;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes that the client has not taken yet. */
  get unread(): number {
    return this.#response.writableLength;
  }

  get ms(): number {
    return Math.round((performance.now() - this.#startedAt) * 10) / 10;
  }

  onClose(listener: () => void): () => void {
    if (this.#response.closed) listener();
    else this.#onClose.push(listener);
    return () => {
      this.#onClose = this.#onClose.filter((one) => one !== listener);
    };
  }

  admitted(signal: AbortSignal): void {
    this.#signal = signal;
  }

  send({ status, body, headers = {} }: Answer): void {
    if (this.begun || this.#response.destroyed) return;
    if (body === undefined) {
      this.begin(status, { ...headers, 'content-length': '0' });
      this.#response.end();
      return;
    }
    const text = Buffer.from(JSON.stringify(body));
    this.begin(status, {
      ...headers,
      'content-type': 'application/json',
      'content-length': String(text.length),
    });
    this.end(text);
  }

  begin(status: number, headers: Readonly<Record<string, string>>): void {
    // Node would wait for the body nonetheless, and answer 408 as well when it does not come.
    if (hasUnreadBody(this.#response.req)) this.#reply.header('connection', 'close');
    this.#response.writeHead(status, { ...(this.#reply.getHeaders() as OutgoingHttpHeaders), ...headers });
  }

  flush(): void {
    this.#response.flushHeaders();
  }

  write(chunk: Buffer | string): Promise<void> | undefined {
    this.#bytes += chunk.length;
    return this.#response.write(chunk) ? undefined : this.#caughtUp();
  }

  end(last?: Buffer | string): void {
    this.#bytes += last?.length ?? 0;
    this.#response.end(last);
  }

  cut(): void {
    this.#response.destroy();
  }

  reset(): void {
    this.#response.socket?.resetAndDestroy(); // a closed connection would still send what the kernel holds, some 4 MB
    this.#response.destroy();
  }

  /** A slow client slows its upstream down instead of filling our memory. */
  #caughtUp(): Promise<void> {
    this.#drained ??= this.#untilDrained().finally(() => {
      this.#drained = undefined;
    });
    this.#drained.catch(() => {}); // a writer that does not wait for room need not hear that there is none
    return this.#drained;
  }

  async #untilDrained(): Promise<void> {
    const over = new AbortController();
    const stop = () => over.abort(this.#signal?.reason ?? new Error('the client has left'));
    if (this.#response.destroyed || this.#signal?.aborted) stop();
    const forget = this.onClose(stop);
    this.#signal?.addEventListener('abort', stop);
    try {
      await once(this.#response, 'drain', { signal: over.signal });
    } finally {
      forget();
      this.#signal?.removeEventListener('abort', stop);
    }
  }
}
