/**
 * What sends the gateway's requests to upstreams: by connections to those at a URL, and in this process to local servers,
 * which have an origin that is no address. So a call, a probe and a search for a document are the same for both.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import { loadUndici } from '../../../core/host/http/undici.ts';
import { CALLING_KEY } from '../mcp/protocol.ts';
import type { LocalServer } from './server.ts';

const undici = loadUndici();

/** Never the name of a machine (RFC 6761). */
const SUFFIX = '.local-server.invalid';

export class UpstreamDispatcher extends undici.Dispatcher {
  readonly #network: Dispatcher;
  /** By origin. */
  readonly #servers = new Map<string, LocalServer>();
  #served = 0;

  /** @param network sends what is for another place */
  constructor(network: Dispatcher) {
    super();
    this.#network = network;
  }

  /** @returns the URL at which this dispatcher, and nothing else, reaches the server */
  serve(name: string, server: LocalServer): URL {
    this.#served += 1;
    const url = new URL(`http://${name.replaceAll('_', '-')}-${this.#served}${SUFFIX}/mcp`);
    this.#servers.set(url.origin, server);
    return url;
  }

  /** Closes a server that `serve` made reachable. */
  async remove({ origin }: URL): Promise<void> {
    const server = this.#servers.get(origin);
    this.#servers.delete(origin);
    await server?.close();
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const origin = String(options.origin);
    const server = this.#servers.get(origin);
    if (!server && !origin.endsWith(SUFFIX)) return this.#network.dispatch(options, handler);
    void new LocalExchange(handler).run(server, options);
    return true;
  }

  override async destroy(): Promise<void> {
    await Promise.all([...this.#servers.keys()].map((origin) => this.remove(new URL(origin))));
    await this.#network.destroy();
  }
}

/** One request to a local server, and its answer as undici's handlers take one. */
class LocalExchange implements Dispatcher.DispatchController {
  aborted = false;
  paused = false;
  reason: Error | null = null;
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #abort = new AbortController();
  #goOn: (() => void) | undefined;

  constructor(handler: Dispatcher.DispatchHandler) {
    this.#handler = handler;
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.#abort.abort(reason);
    this.resume();
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
    this.#goOn?.();
  }

  /** @param server undefined once it was closed */
  async run(server: LocalServer | undefined, options: Dispatcher.DispatchOptions): Promise<void> {
    const handler = this.#handler;
    try {
      handler.onRequestStart?.(this, {});
      if (this.aborted) throw this.reason;
      if (!server) throw new undici.errors.SocketError('the server is closed');
      const response = await this.#answerOf(server, options);
      handler.onResponseStart?.(this, response.status, headersOf(response), response.statusText);
      if (response.body) await this.#pass(response.body);
      if (this.aborted) throw this.reason;
      handler.onResponseEnd?.(this, {});
    } catch (error) {
      handler.onResponseError?.(this, this.reason ?? (error as Error));
    }
  }

  /** @throws HeadersTimeoutError, the reason of an abort, what the server throws */
  async #answerOf(
    server: LocalServer,
    { origin, path, method, headers, body, headersTimeout }: Dispatcher.DispatchOptions,
  ): Promise<Response> {
    const { promise: given, reject: giveUp } = Promise.withResolvers<never>();
    given.catch(() => {});
    const { signal } = this.#abort;
    signal.addEventListener('abort', () => giveUp(signal.reason), { once: true });
    const late = headersTimeout
      ? setTimeout(() => this.abort(new undici.errors.HeadersTimeoutError()), headersTimeout)
      : undefined;
    const { [CALLING_KEY]: key, ...others } = headers as Record<string, string>;
    const request = new Request(`${origin}${path}`, {
      method,
      headers: others,
      ...(typeof body === 'string' && { body }),
      signal,
    });
    try {
      return await Promise.race([server.fetch(request, key), given]);
    } finally {
      clearTimeout(late);
    }
  }

  async #pass(body: NonNullable<Response['body']>): Promise<void> {
    const reader = body.getReader();
    const stop = (): void => void reader.cancel(this.reason).catch(() => {});
    this.#abort.signal.addEventListener('abort', stop, { once: true });
    while (!this.aborted) {
      const { done, value } = await reader.read();
      if (done) return;
      this.#handler.onResponseData?.(this, Buffer.from(value.buffer, value.byteOffset, value.byteLength));
      if (this.paused) await new Promise<void>((resolve) => (this.#goOn = resolve));
    }
  }
}

const headersOf = ({ headers }: Response): IncomingHttpHeaders => Object.fromEntries(headers);
