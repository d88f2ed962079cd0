import { createRequire } from 'node:module';
import { isIP } from 'node:net';
import { TLSSocket } from 'node:tls';
import type * as Undici from 'undici';
import type { Agent, buildConnector, Dispatcher } from 'undici';
import { hostOf } from './addresses.ts';
import {
  type ConnectionOptions,
  KEEP_ALIVE_MS,
  type ReceivedAnswer,
  type SentRequest,
} from './connections.ts';

// What undici does in place of Node's own client: requests by a dispatcher that the caller has, and the pin of a certificate.

/**
 * Loads the parts of undici that make connections. The package's own entry loads fetch, caches, mocks and WebSockets too,
 * some 8 MB of memory: bench `idle`, row "resident memory, idle, no engine" (target: < 150 MB).
 */
export function loadUndici(): Pick<typeof Undici, 'Agent' | 'Dispatcher' | 'buildConnector' | 'errors'> {
  const load = createRequire(import.meta.url);
  const Base: typeof Undici.Dispatcher = load('undici/lib/dispatcher/dispatcher.js');
  Object.assign(Base.prototype, load('undici/lib/api')); // as the entry does
  return {
    Agent: load('undici/lib/dispatcher/agent.js'),
    Dispatcher: Base,
    buildConnector: load('undici/lib/core/connect.js'),
    errors: load('undici/lib/core/errors.js'),
  };
}

/** What sends requests: an agent of undici, of whatever copy of it. */
export type HttpDispatcher = Pick<Dispatcher, 'request'>;

interface PinningOptions extends Omit<ConnectionOptions, 'keepAlive' | 'ca'> {
  /** Fingerprint (SHA-256, `AB:CD:…`) of the only certificate that is trusted. */
  readonly pin: string;
}

/** Sends one request with a dispatcher. @returns the answer as soon as its headers are there @throws undici's error */
export async function dispatch(
  dispatcher: HttpDispatcher,
  { url, method, headers, body, signal, idleTimeoutMs = 0, reset }: SentRequest & { readonly reset: boolean },
): Promise<ReceivedAnswer> {
  const answer = await dispatcher.request({
    method,
    headers,
    signal,
    ...(body !== undefined && { body }),
    origin: url.origin,
    path: url.pathname + url.search,
    reset,
    // The deadline of the whole call is the client's.
    headersTimeout: idleTimeoutMs,
    bodyTimeout: idleTimeoutMs,
  });
  return {
    status: answer.statusCode,
    headers: answer.headers,
    body: answer.body as AsyncIterable<Uint8Array>,
    discard: () => void answer.body.on('error', () => {}).destroy(),
  };
}

/** An agent that trusts one certificate: undici says when a connection is made and not yet used, and the two are compared then. */
export async function makePinningAgent(options: PinningOptions): Promise<Agent> {
  const { Agent, buildConnector } = loadUndici();
  const { pin, connections, connectTo, connectTimeoutMs: timeout } = options;
  const connect = pinned(buildConnector({ timeout, ...PINNED }), pin);
  return new Agent({
    connect: connectTo ? elsewhere(connect, connectTo) : connect,
    ...(connections !== undefined && { connections }),
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
}

/** The certificate itself is compared, so no authority needs to know it; a session of before would hide it. */
const PINNED = { rejectUnauthorized: false, maxCachedSessions: 0 };

/** Connects only to the server that has the key of a certificate. Nothing is sent before that is known. */
function pinned(connect: buildConnector.connector, pin: string): buildConnector.connector {
  return (target, callback) =>
    connect(target, (...[error, socket]) => {
      if (error) return callback(error, null);
      const found = socket instanceof TLSSocket ? socket.getPeerX509Certificate()?.fingerprint256 : undefined;
      if (found === pin) return callback(null, socket);
      socket.destroy();
      const message = 'another certificate than the one that is pinned';
      callback(Object.assign(new Error(message), { code: 'ERR_TLS_CERT_PIN' }), null);
    });
}

/** Connects to another address than the URL's. The name asked for stays the URL's, in the certificate as well. */
function elsewhere(
  connect: buildConnector.connector,
  { host, port }: NonNullable<ConnectionOptions['connectTo']>,
): buildConnector.connector {
  return (target, callback) => {
    const name = hostOf(target);
    const servername = target.servername ?? (isIP(name) === 0 ? name : undefined);
    const to = { ...target, hostname: host, host, port: port === undefined ? target.port : String(port) };
    connect(servername === undefined ? to : { ...to, servername }, callback);
  };
}
