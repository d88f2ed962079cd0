import { Agent, type Dispatcher } from 'undici';

/** How long a connection to an upstream may take, milliseconds. */
const CONNECT_MS = 10_000;

/**
 * The connections to upstreams. Streams may stay silent for hours, so bodies have no time limit of their own: a client
 * that leaves, or a stop, ends them.
 */
export function upstreamAgent(): Agent {
  return new Agent({
    connect: { timeout: CONNECT_MS },
    bodyTimeout: 0,
    keepAliveTimeout: 30_000,
    pipelining: 1,
    maxResponseSize: -1,
  });
}

export interface UpstreamRequest {
  readonly url: URL;
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** Until the answer's headers, milliseconds. */
  readonly timeoutMs: number;
}

export type UpstreamAnswer = Dispatcher.ResponseData;

/** One request to an upstream; redirects are not followed, for the credential is for this URL alone. */
export function ask(
  agent: Dispatcher,
  { url, method, headers, body, signal, timeoutMs }: UpstreamRequest,
): Promise<UpstreamAnswer> {
  return agent.request({
    origin: url.origin,
    path: url.pathname + url.search,
    method,
    headers,
    body: body ?? null,
    signal,
    headersTimeout: timeoutMs,
    bodyTimeout: 0,
  });
}
