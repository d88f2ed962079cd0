import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from '../logging/logger.ts';
import type { Metrics } from '../metrics/metrics.ts';

/** A request that ended before its handler: refused, too large, too slow, or its client left. */
export interface Unhandled {
  /** Its body was not read, or not whole. */
  readonly raw: IncomingMessage;
  readonly correlation: string;
  /** That was sent; undefined when the client left before. */
  readonly status: number | undefined;
  /** From its head to its end, milliseconds. */
  readonly ms: number;
}

/** A request that is over. */
export interface Ended {
  readonly raw: IncomingMessage;
  readonly response: ServerResponse;
  /** Pattern: a URL may hold a secret and is never repeated. */
  readonly route: string;
  readonly correlation: string;
  /** When its head was read, by the monotonic clock. */
  readonly started: number;
  /** Whether a handler got to see it. */
  readonly handled: boolean;
}

/** What is told of requests. */
export interface Measure {
  /** One debug line and two metrics, however it ended. */
  ended(request: Ended): void;
  /** Counts bytes that became no request, by the status that answered them. */
  refused(status: number): void;
}

export function measure(
  surface: string,
  log: Logger,
  metrics: Metrics | undefined,
  onUnhandled: ((request: Unhandled) => void) | undefined,
): Measure {
  const requests = metrics?.counter('http_requests_total', {
    help: 'Requests that are over; status none where the client left before an answer.',
    labels: ['surface', 'route', 'status'],
  });
  const refusals = metrics?.counter('http_connections_refused_total', {
    help: 'Connections that ended because what they sent was no request.',
    labels: ['surface', 'status'],
  });
  const seconds = metrics?.histogram('http_request_seconds', {
    help: 'Time from the request line to the end of the answer.',
    labels: ['surface'],
    buckets: [0.0005, 0.002, 0.01, 0.05, 0.25, 1, 5, 30],
  });
  return {
    ended({ raw, response, route, correlation, started, handled }) {
      const status = response.headersSent ? response.statusCode : undefined;
      const ms = performance.now() - started;
      requests?.inc({ surface, route, status: status ?? 'none' });
      seconds?.observe({ surface }, ms / 1_000);
      log.debug({ route, method: raw.method, status, ms, correlation }, 'http.answered');
      if (!handled) onUnhandled?.({ raw, correlation, status, ms });
    },
    refused(status) {
      refusals?.inc({ surface, status });
    },
  };
}
