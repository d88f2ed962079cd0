import type { Logger } from '../logging/index.ts';
import type { Metrics } from '../metrics.ts';

/** A request that was answered, by route pattern: a URL may hold a secret and is never repeated. */
export interface Answered {
  readonly route: string;
  readonly method: string;
  readonly status: number;
  /** From the request line to the end of the answer, milliseconds. */
  readonly ms: number;
  readonly correlation: string;
}

/** @returns writes one debug line and two metrics a request */
export function measure(
  surface: string,
  log: Logger,
  metrics: Metrics | undefined,
): (answered: Answered) => void {
  const requests = metrics?.counter('http_requests_total', {
    help: 'Requests answered.',
    labels: ['surface', 'route', 'status'],
  });
  const seconds = metrics?.histogram('http_request_seconds', {
    help: 'Time from the request line to the end of the answer.',
    labels: ['surface'],
    buckets: [0.0005, 0.002, 0.01, 0.05, 0.25, 1, 5, 30],
  });
  return ({ route, status, ms, ...rest }) => {
    requests?.inc({ surface, route, status });
    seconds?.observe({ surface }, ms / 1_000);
    log.debug({ route, status, ms, ...rest }, 'http.answered');
  };
}
