import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { PlainPost } from '../../../core/host/http/short-way.ts';
import type { Exchange } from '../exchange.ts';
import type { Answer } from '../mcp/answers.ts';
import { CallEnding, type Ending } from '../stop.ts';

/** A request of a client, and where it is answered. */
export interface ClientRequest extends PlainPost {
  /** The headers that every answer of the surface bears. */
  readonly ofAll: () => Readonly<Record<string, string>>;
}

/** Takes a request out of the framework's hands. */
export function hijacked(request: FastifyRequest, reply: FastifyReply): ClientRequest {
  reply.hijack();
  const ofAll = () => reply.getHeaders() as Record<string, string>;
  return { raw: request.raw, response: reply.raw, id: request.id, ofAll };
}

/**
 * One HTTP exchange with a client, taken out of the framework's hands: the answer may be a stream that goes on for
 * hours.
 */
export class ClientExchange implements Exchange {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: IncomingHttpHeaders;
  readonly correlation: string;
  /** Address of the caller. */
  readonly source: string;
  readonly facts: Exchange['facts'] = {};
  /** Path and query, and all headers, as they came; for nothing but to look for what should not be there. */
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly #response: ServerResponse;
  readonly #ofAll: ClientRequest['ofAll'];
  readonly #gone = new CallEnding();
  readonly #onClose: (() => void)[] = [];
  readonly #startedAt = performance.now();
  #bytes = 0;
  #drained: Promise<void> | undefined;

  constructor({ raw, response, id, ofAll }: ClientRequest) {
    this.method = raw.method as 'GET' | 'POST' | 'DELETE';
    this.headers = raw.headers;
    this.url = raw.url ?? '';
    this.rawHeaders = raw.rawHeaders;
    this.correlation = id;
    this.source = raw.socket.remoteAddress ?? '';
    this.#response = response;
    this.#ofAll = ofAll;
    response.on('close', () => {
      if (!response.writableFinished) this.#gone.abort(new Error('the client has left'));
      for (const listener of this.#onClose) listener();
    });
  }

  get gone(): Ending {
    return this.#gone;
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

  onClose(listener: () => void): void {
    if (this.#response.closed) listener();
    else this.#onClose.push(listener);
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

  /** Sends status and headers, and those that every answer of the surface bears. */
  begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.#response.writeHead(status, { ...this.#ofAll(), ...headers });
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

  /** A slow client slows its upstream down instead of filling our memory. */
  #caughtUp(): Promise<void> {
    this.#drained ??= new Promise<void>((resolve, reject) => {
      const response = this.#response;
      if (this.gone.aborted || response.destroyed) return reject(this.gone.reason);
      const done = () => {
        this.gone.removeEventListener('abort', left);
        resolve();
      };
      const left = () => {
        response.removeListener('drain', done);
        reject(this.gone.reason);
      };
      response.once('drain', done);
      this.gone.addEventListener('abort', left);
    }).finally(() => {
      this.#drained = undefined;
    });
    this.#drained.catch(() => {}); // who does not wait for room need not hear that there is none
    return this.#drained;
  }
}
