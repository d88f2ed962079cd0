import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from '../logging/logger.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { free } from './bounded-body.ts';

/** Requests that may wait behind another of their connection. Today's clients do not pipeline at all. */
const MOST_PIPELINED = 128;

/** A request that ended before its handler: refused, too large, too slow, or its client left. */
export interface Unhandled {
  /** Its body was not read, or not whole. */
  readonly raw: IncomingMessage;
  readonly correlation: string;
  /** The status that was sent; undefined when the client left before. */
  readonly status: number | undefined;
  /** From its head to its end, milliseconds. */
  readonly ms: number;
}

/** Hears of such requests. */
export type UnhandledListener = (request: Unhandled) => void;

/** A request from its head to the end of its answer. */
export interface OpenRequest {
  readonly raw: IncomingMessage;
  readonly response: ServerResponse;
  /** The pattern of the route. The URL itself may hold a secret and is never repeated. */
  readonly route: string;
  readonly correlation: string;
  /** When its head was read, by the monotonic clock. */
  readonly started: number;
  /** Whether a handler got it. */
  handled: boolean;
}

/** Requests whose bodies are dropped as they arrive. */
const dropping = new WeakSet<IncomingMessage>();

/**
 * Drops the body of a request that is refused unread as it arrives, so that its sender can read the answer and keep the
 * connection.
 *
 * @param limit bytes; a longer body ends the connection, while Node alone would drop one of any length
 */
export function dropBody(request: IncomingMessage, limit: number): void {
  dropping.add(request);
  let length = 0;
  request.on('data', (chunk: Buffer) => {
    length += chunk.length;
    free(chunk);
    if (length > limit) request.destroy();
  });
}

/**
 * Whether a part of a request's body has yet to come, and nobody reads it (`dropBody`). Its answer must end the connection:
 * a client that never sends the rest would get a second answer, 408.
 */
export function hasUnreadBody(request: IncomingMessage): boolean {
  if (request.complete || dropping.has(request)) return false;
  const { headers } = request;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** The requests of one connection in the order in which they came, which is that of their answers. */
type Line = OpenRequest[];

export interface OpenRequestsOptions {
  /** Name of the surface. */
  readonly surface: string;
  readonly log: Logger;
  readonly metrics: Metrics | undefined;
}

/** The requests of a surface that are being answered: measured when they end, and waited for when it stops. */
export class OpenRequests {
  readonly #lines = new Map<Socket, Line>();
  readonly #draining = new AbortController();
  readonly #log: Logger;
  readonly #measure: ReturnType<typeof requestMetrics>;
  readonly #unhandledListeners: UnhandledListener[] = [];
  #count = 0;
  #allDone: (() => void) | undefined;

  constructor({ surface, log, metrics }: OpenRequestsOptions) {
    this.#log = log;
    this.#measure = requestMetrics(surface, metrics);
  }

  /** Aborted once the surface takes no more requests. */
  get draining(): AbortSignal {
    return this.#draining.signal;
  }

  /** Counts a request until its answer is sent or its client gone. One debug line and two metrics say how it ended. */
  enter(opened: Omit<OpenRequest, 'started' | 'handled'>): void {
    const request: OpenRequest = { ...opened, started: performance.now(), handled: false };
    const line = this.#lineOf(request.raw.socket);
    line.push(request);
    this.#count += 1;
    // Node would let any number of them wait behind the others of their connection.
    if (line.length > 1 + MOST_PIPELINED) request.raw.socket.destroy();
    request.response.on('close', () => {
      this.#end(request);
      if (line[0] === request) line.shift();
      else line.splice(line.indexOf(request), 1);
      this.#count -= 1;
      if (this.#count === 0) this.#allDone?.();
    });
  }

  /** Has the listener called for each request that ends without a handler. */
  onUnhandled(listener: UnhandledListener): void {
    this.#unhandledListeners.push(listener);
  }

  /** Notes that a handler got the request. */
  handled({ socket }: IncomingMessage, response: ServerResponse): void {
    const request = this.#lines.get(socket)?.find((one) => one.response === response);
    if (request) request.handled = true;
  }

  /** @returns the request whose answer this connection waits for, or that is on its way */
  answeredOn(socket: Socket): OpenRequest | undefined {
    return this.#lines.get(socket)?.find(({ response }) => response.socket === socket);
  }

  /** Counts bytes that became no request, by the status that answered them. */
  refused(status: number): void {
    this.#measure.refused(status);
  }

  /**
   * Takes no more requests and waits for those that are being answered. Their connections end with the answer.
   *
   * @param deadlineMs longest wait
   * @returns how many were still open at the deadline
   */
  async drain(deadlineMs: number): Promise<number> {
    this.#draining.abort();
    for (const { response } of [...this.#lines.values()].flat()) {
      if (!response.headersSent) response.setHeader('connection', 'close');
    }
    if (this.#count === 0) return 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#allDone = resolve;
    const timer = setTimeout(resolve, deadlineMs);
    await promise;
    clearTimeout(timer);
    return this.#count;
  }

  #lineOf(socket: Socket): Line {
    const existing = this.#lines.get(socket);
    if (existing) return existing;
    const line: Line = [];
    this.#lines.set(socket, line);
    socket.once('close', () => this.#lines.delete(socket));
    return line;
  }

  #end({ raw, response, route, correlation, started, handled }: OpenRequest): void {
    const status = response.headersSent ? response.statusCode : undefined;
    const ms = performance.now() - started;
    this.#measure.ended(route, status, ms);
    this.#log.debug({ route, method: raw.method, status, ms, correlation }, 'http.answered');
    if (handled) return;
    for (const listener of this.#unhandledListeners) listener({ raw, correlation, status, ms });
  }
}

function requestMetrics(surface: string, metrics: Metrics | undefined) {
  const requests = metrics?.counter('http_requests_total', {
    help: 'Requests that are over; status none where the client left before an answer.',
    labels: ['surface', 'route', 'status'],
  });
  const refusals = metrics?.counter('http_connections_refused_total', {
    help: 'Connections that ended because what they sent was no request.',
    labels: ['surface', 'status'],
  });
  const seconds = metrics
    ?.histogram('http_request_seconds', {
      help: 'Time from the request line to the end of the answer.',
      labels: ['surface'],
      buckets: [0.0005, 0.002, 0.01, 0.05, 0.25, 1, 5, 30],
    })
    .labels({ surface });
  /** By route and status: prom-client hashes all labels each time it looks a value up. */
  const counted = new Map<string, { inc(): void }>();
  const countedAs = (route: string, status: number | 'none') => {
    const name = `${status} ${route}`;
    const counter = counted.get(name) ?? requests?.labels({ surface, route, status });
    if (counter) counted.set(name, counter);
    return counter;
  };
  return {
    ended(route: string, status: number | undefined, ms: number): void {
      countedAs(route, status ?? 'none')?.inc();
      seconds?.observe(ms / 1_000);
    },
    refused: (status: number): void => refusals?.inc({ surface, status }),
  };
}

/** The headers that every answer of a surface has. @param id correlation id of the request */
export const headersOfAll = (id: string): Record<string, string> => ({
  'x-correlation-id': id,
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
});
