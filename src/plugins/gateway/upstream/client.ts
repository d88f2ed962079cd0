import type { IncomingHttpHeaders } from 'node:http';
import { Agent, type Dispatcher } from 'undici';
import type { Ending } from '../stop.ts';
import { AnswerBody } from './answer-body.ts';

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
  readonly signal: Ending;
  /** Until the answer's headers, milliseconds. */
  readonly timeoutMs: number;
}

export interface UpstreamAnswer {
  readonly statusCode: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: AnswerBody;
}

/**
 * One request to an upstream; redirects are not followed, for the credential is for this URL alone.
 *
 * @returns the answer when its headers are there; the signal ends it and its body
 */
export function ask(agent: Dispatcher, request: UpstreamRequest): Promise<UpstreamAnswer> {
  const { url, method, headers, body, signal, timeoutMs } = request;
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    agent.dispatch(
      {
        origin: url.origin,
        path: url.pathname + url.search,
        method,
        headers,
        body: body ?? null,
        headersTimeout: timeoutMs,
        bodyTimeout: 0,
      },
      new Asking(signal, resolve, reject),
    );
  });
}

/** Hears undici directly: its streams and promises would take more time than all that the gateway does itself. */
class Asking implements Dispatcher.DispatchHandler {
  readonly #signal: Ending;
  readonly #answered: (answer: UpstreamAnswer) => void;
  readonly #failed: (error: unknown) => void;
  readonly #abort = (): void => this.#stop();
  #controller: Dispatcher.DispatchController | undefined;
  #body: AnswerBody | undefined;

  constructor(signal: Ending, answered: (answer: UpstreamAnswer) => void, failed: (error: unknown) => void) {
    this.#signal = signal;
    this.#answered = answered;
    this.#failed = failed;
    signal.addEventListener('abort', this.#abort);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#signal.aborted) controller.abort(this.#signal.reason as Error);
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (statusCode < 200) return;
    this.#body = new AnswerBody(controller);
    this.#answered({ statusCode, headers, body: this.#body });
  }

  onResponseData(_controller: Dispatcher.DispatchController, part: Buffer): void {
    this.#body?.push(part);
  }

  onResponseEnd(): void {
    this.#release();
    this.#body?.end();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#release();
    this.#failed(error); // nobody hears it once it is answered
    this.#body?.end(error);
  }

  #stop(): void {
    const { reason } = this.#signal;
    this.#failed(reason);
    if (this.#body) this.#body.destroy(reason);
    else this.#controller?.abort(reason as Error);
  }

  #release(): void {
    this.#signal.removeEventListener('abort', this.#abort);
  }
}
