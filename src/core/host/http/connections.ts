import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { isIP, type Socket } from 'node:net';
import { hostOf, nearPath } from './addresses.ts';

/** A connection that nobody uses is closed after this, milliseconds, or earlier where the server says so. */
export const KEEP_ALIVE_MS = 4_000;

export interface ConnectionOptions {
  /** Connecting longer than this fails the request, milliseconds; a TLS handshake counts. */
  readonly connectTimeoutMs: number;
  /** Connections to one host at a time; unlimited unless set. */
  readonly connections?: number | undefined;
  readonly ca?: string | undefined;
  readonly connectTo?: { readonly host: string; readonly port?: number | undefined } | undefined;
  readonly keepAlive: boolean;
}

export interface SentRequest {
  readonly url: URL;
  /** A Unix socket to send it by, in a connection of its own. */
  readonly socketPath?: string | undefined;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  readonly signal: AbortSignal;
  /** The longest pause of the answer, milliseconds. */
  readonly idleTimeoutMs?: number | undefined;
}

/** By name in lower case. */
export type HttpHeaders = Readonly<Record<string, string | string[] | undefined>>;

export interface ReceivedAnswer {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly body: AsyncIterable<Uint8Array>;
  /** Gives up what is unread of it. */
  discard(): void;
}

/**
 * Node's own HTTP client with its connections. Its parser is that of our servers; undici's is WebAssembly, which takes
 * 7 MB from the first request on.
 */
export class Connections {
  readonly #options: ConnectionOptions;
  readonly #requests = new Set<ClientRequest>();
  readonly #agents = new Map<string, Agent>();

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** @returns the answer as soon as its headers are there @throws the network's error, or `TimedOut` */
  send(sent: SentRequest): Promise<ReceivedAnswer> {
    const { url, socketPath, method, headers, body, signal, idleTimeoutMs } = sent;
    const { connectTimeoutMs, connectTo } = this.#options;
    const host = hostOf(url);
    const options: RequestOptions & { servername?: string } = {
      agent: this.#agentFor(url.protocol),
      protocol: url.protocol,
      method,
      host: connectTo?.host ?? host,
      port: connectTo?.port ?? url.port,
      ...(socketPath !== undefined && { socketPath: nearPath(socketPath), agent: false }),
      path: url.pathname + url.search,
      // The name asked for stays the URL's, in the certificate as well.
      headers: { host: url.host, ...lengthOf(body), ...headers },
      ...(connectTo && isIP(host) === 0 && { servername: host }),
      signal,
    };
    return new Promise((resolve, reject) => {
      const request = clientOf(url.protocol).request(options);
      this.#requests.add(request);
      let waiting: ClientRequest | IncomingMessage = request;
      request
        .on('error', reject)
        .once('socket', (socket) => limitConnecting(request, socket, connectTimeoutMs))
        .once('response', (answer) => {
          waiting = answer;
          resolve(received(answer));
        })
        .once('close', () => this.#requests.delete(request));
      if (idleTimeoutMs) {
        request.setTimeout(idleTimeoutMs, () => waiting.destroy(new TimedOut('IDLE_TIMEOUT')));
      }
      request.end(body);
    });
  }

  /** Breaks off what is under way. */
  close(): void {
    for (const request of this.#requests) request.destroy();
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  #agentFor(protocol: string): Agent {
    const known = this.#agents.get(protocol);
    if (known) return known;
    const { connections, ca, keepAlive } = this.#options;
    const agent = new (clientOf(protocol).Agent)({
      keepAlive,
      timeout: KEEP_ALIVE_MS,
      ...(connections !== undefined && { maxSockets: connections }),
      ...(ca !== undefined && { ca }),
    });
    this.#agents.set(protocol, agent);
    return agent;
  }
}

/** No answer came in time, for the reason that its code names. */
class TimedOut extends Error {
  readonly code: 'CONNECT_TIMEOUT' | 'IDLE_TIMEOUT';

  constructor(code: TimedOut['code']) {
    super(code);
    this.code = code;
  }
}

/** An `import` would read the property WebSocket of node:http, for which Node loads its fetch: 2 MB. */
function clientOf(protocol: string) {
  return protocol === 'https:'
    ? process.getBuiltinModule('node:https')
    : process.getBuiltinModule('node:http');
}

function limitConnecting(request: ClientRequest, socket: Socket, ms: number): void {
  if (request.reusedSocket) return;
  const timer = setTimeout(() => request.destroy(new TimedOut('CONNECT_TIMEOUT')), ms);
  const made = 'encrypted' in socket ? 'secureConnect' : 'connect';
  const stop = () => clearTimeout(timer);
  socket.once(made, stop).once('close', stop);
}

/** Node announces no length for a body of GET or DELETE. */
function lengthOf(body: SentRequest['body']): Record<string, string> {
  return body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
}

function received(answer: IncomingMessage): ReceivedAnswer {
  return {
    status: answer.statusCode ?? 0,
    headers: answer.headers,
    body: answer,
    discard: () => void answer.on('error', () => {}).destroy(),
  };
}
