import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Answer } from '../mcp/answers.ts';

/**
 * One HTTP exchange with a client, taken out of the framework's hands: the answer may be a stream that goes on for hours.
 */
export class ClientExchange {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: IncomingHttpHeaders;
  readonly correlation: string;
  readonly response: ServerResponse;
  readonly #reply: FastifyReply;
  readonly #gone = new AbortController();
  readonly #startedAt = performance.now();
  #bytes = 0;

  constructor(request: FastifyRequest, reply: FastifyReply) {
    this.method = request.method as 'GET' | 'POST' | 'DELETE';
    this.headers = request.headers;
    this.correlation = request.id;
    this.response = reply.raw;
    this.#reply = reply;
    reply.hijack();
    this.response.once('close', () => {
      if (!this.response.writableFinished) this.#gone.abort();
    });
  }

  /** Aborted when the client leaves before its answer is whole. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Whether a part of the answer is out. */
  get begun(): boolean {
    return this.response.headersSent;
  }

  /** Bytes of the answer's body so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Milliseconds since the request came. */
  get ms(): number {
    return Math.round((performance.now() - this.#startedAt) * 10) / 10;
  }

  /** Sends a whole answer, unless one has begun. */
  send({ status, body, headers = {} }: Answer): void {
    if (this.begun || this.response.destroyed) return;
    if (body === undefined) {
      this.begin(status, { ...headers, 'content-length': '0' });
      this.response.end();
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

  /** Sends status and headers, and those that every answer of the surface bears. */
  begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.response.writeHead(status, { ...(this.#reply.getHeaders() as Record<string, string>), ...headers });
  }

  /** @returns whether the client keeps up; otherwise wait for `drain` */
  write(chunk: Buffer | string): boolean {
    this.#bytes += chunk.length;
    return this.response.write(chunk);
  }

  end(last?: Buffer | string): void {
    this.#bytes += last?.length ?? 0;
    this.response.end(last);
  }

  /** Breaks an answer off: the client sees that it is not whole. */
  cut(): void {
    this.response.destroy();
  }
}
