import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { Server as TlsServer } from 'node:tls';
import {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerFactory,
  fastify,
  type RawServerDefault,
} from 'fastify';
import { newCorrelation } from '../../kernel/clock.ts';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { HostError } from '../errors/host-error.ts';
import type { Logger } from '../logging/logger.ts';
import { bracketed, urlOf } from './addresses.ts';
import { Admission, isLoopback, isWrite, requireMediaTypes } from './admission.ts';
import { type KeyPair, ServedCertificate } from './certificate.ts';
import type { HttpSurface, Place, Surface, SurfaceDependencies, SurfaceOptions } from './contract.ts';
import { parseJsonBody } from './json-body.ts';
import { PathMethods } from './path-methods.ts';
import { type Uid, uidOf } from './peer.ts';
import { overBudgetMetric, peerOf, RequestBudget, USUAL_WRITES } from './request-budget.ts';
import { hasUnreadBody, headersOfAll, OpenRequests, type UnhandledListener } from './requests.ts';
import { listenOnSocket } from './socket.ts';
import { codedError, connectionError, errorBody, shownPath, wholeAnswer } from './surface-errors.ts';

/** What the token of the surface would open. */
const OPENED_BY_TOKEN: ReadonlySet<string> = new Set(['HF_HTTP_UNAUTHORIZED', 'HF_HTTP_SECRETS']);
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_PARAM_LENGTH = 256;
const HEADERS_TIMEOUT_MS = 10_000;
const LONGEST_CHECK_MS = 5_000;
/** As fastify sets it for servers that it makes itself. */
const KEEP_ALIVE_MS = 72_000;
/** A client that does not finish its handshake is a connection less for the others. */
const TLS = { minVersion: 'TLSv1.2', handshakeTimeout: 10_000 } as const;

/**
 * Makes a listener that does nothing yet. Whatever is wrong with a request (its host, token, method, size, type, JSON) is
 * answered with a coded error before a handler sees it; whatever goes wrong in a handler is answered without its text.
 */
export function createSurface(
  options: SurfaceOptions,
  { logger, metrics, senders }: SurfaceDependencies,
): Surface {
  const { name, port, portVariable, bodyLimit = 1024 * 1024, requestTimeoutMs = 30_000 } = options;
  // Fastify would bind every address that the name has, each with a port of its own when the port is 0.
  const host = options.host === undefined || options.host === 'localhost' ? '127.0.0.1' : options.host;
  const limits = {
    bodyLimit,
    requestTimeoutMs,
    maxHeaderSize: MAX_HEADER_BYTES,
    maxParamLength: MAX_PARAM_LENGTH,
  };
  const { socket, token = () => undefined, tokenFile } = options;
  const isExposed = socket === undefined && !isLoopback(host);
  const tokenRequired = options.auth === 'token' || (isExposed && options.admission !== 'own');
  const tls = socket === undefined ? options.tls : undefined;
  const scheme = tls ? 'https' : 'http';
  const { allowedHosts = [], checkOriginOfReads = false, publicOrigin, tokenHeader } = options;
  const admission = new Admission({
    ...{ host, allowedHosts, checkOriginOfReads, publicOrigin, scheme },
    ...{ token, tokenHeader, tokenRequired },
    secretsNeedToken: options.secretsNeedToken === true && socket === undefined,
  });
  const { writeBudget = USUAL_WRITES, lenientPaths = false } = options;
  const routes = new PathMethods(lenientPaths);
  const log = logger.child({ surface: name });
  const requests = new OpenRequests({ surface: name, log, metrics });
  const onRefused = overBudgetMetric(name, metrics);
  const isLimited = writeBudget !== 'own' && options.isControl !== true;
  const budget = isLimited ? new RequestBudget({ size: writeBudget, logger: log, onRefused }) : undefined;
  const enter = (request: FastifyRequest, reply: FastifyReply): void => {
    const { raw, id: correlation } = request;
    requests.enter({ raw, response: reply.raw, route: routeOf(request), correlation });
  };

  const answer = (error: unknown, request: FastifyRequest, reply: FastifyReply): void => {
    const coded = codedError(error, request, limits);
    if (coded.status >= 500 && coded.code !== 'HF_HTTP_STOPPING') {
      const level = coded.code === 'HF_INTERNAL' ? 'error' : 'warn';
      log[level]({ err: coded, route: routeOf(request), correlation: request.id }, 'http.failed');
    }
    if (coded.code === 'HF_HTTP_BUDGET') reply.header('retry-after', String(coded.details.seconds));
    if (coded.code === 'HF_HTTP_STOPPING') reply.header('retry-after', '1');
    if (OPENED_BY_TOKEN.has(coded.code)) reply.header('www-authenticate', 'Bearer');
    reply.code(coded.status).send(errorBody(coded, options.errorBody, request.raw.url));
  };

  const server = {
    maxHeaderSize: MAX_HEADER_BYTES,
    requestTimeout: requestTimeoutMs,
    headersTimeout: Math.min(HEADERS_TIMEOUT_MS, requestTimeoutMs),
    connectionsCheckingInterval: Math.min(LONGEST_CHECK_MS, Math.max(50, requestTimeoutMs / 4)),
    requireHostHeader: false, // Node would answer without a body; admission answers with a code
  };
  /** Its certificate comes when it listens. */
  const serverFactory: FastifyServerFactory<RawServerDefault> = (handler) =>
    createServer({ ...server, ...TLS, keepAliveTimeout: KEEP_ALIVE_MS }, handler);
  const app = fastify<RawServerDefault>({
    bodyLimit,
    requestTimeout: requestTimeoutMs,
    forceCloseConnections: true, // `close` waits for answers itself, then wants an end
    return503OnClosing: false,
    // No route has a schema: zod checks what comes in. Fastify would load its compilers of schemas, 2 MB of memory.
    schemaController: { compilersFactory: { buildValidator: noSchemas, buildSerializer: noSchemas } },
    genReqId: newCorrelation,
    routerOptions: {
      maxParamLength: MAX_PARAM_LENGTH,
      caseSensitive: !lenientPaths,
      ignoreTrailingSlash: lenientPaths,
    },
    frameworkErrors(error, request, reply) {
      enter(request, reply); // it comes here before the first hook
      reply.headers(headersOfAll(request.id));
      answer(error, request, reply);
    },
    http: server,
    ...(tls ? { serverFactory } : {}),
    clientErrorHandler(error, socket) {
      if (error.code === 'ECONNRESET' || socket.destroyed) return;
      const open = requests.answeredOn(socket as Socket);
      const response = open?.response;
      if (!socket.writable || response?.headersSent) return void socket.destroy();
      const coded = connectionError(error, limits);
      const correlation = open?.correlation ?? newCorrelation();
      log.debug({ code: coded.code, reason: error.code, correlation }, 'http.refused');
      socket.setTimeout(1_000, () => socket.destroy()); // for a client that does not even read
      // A request whose head was read is answered on its own response, so that it is counted like any other. One that a
      // handler has already is not: with an answer sent, the handler would not hear that the client is gone.
      const unread = open?.raw.complete === false && !open.handled;
      const request = unread ? open.raw : undefined;
      const body = errorBody(coded, options.errorBody, request?.url);
      const answered = wholeAnswer(coded.status, body, correlation);
      if (request) {
        response?.writeHead(coded.status, answered.headers).end(answered.text, () => socket.destroy());
      } else {
        requests.refused(coded.status);
        socket.end(answered.raw, () => socket.destroy());
      }
    },
  });

  app.removeContentTypeParser(['application/json', 'text/plain']);
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    done(null, parseJsonBody(body as Buffer));
  });
  app.addHook('onRoute', (route) => {
    routes.add(route);
    requireMediaTypes(route);
    const { handler } = route;
    route.handler = function mark(request, reply) {
      requests.handled(request.raw, reply.raw);
      return handler.call(this, request, reply);
    };
  });
  app.addHook('onRequest', (request, reply, done) => {
    enter(request, reply);
    reply.headers(headersOfAll(request.id));
    if (requests.draining.aborted) {
      reply.header('connection', 'close');
      return done(new HostError('HF_HTTP_STOPPING'));
    }
    const isLimitedCall = budget !== undefined && isCounted(request);
    const { credential, pages } = request.routeOptions.config;
    admission.check(request.raw, { credential, acts: isLimitedCall || isWrite(request.method), pages });
    const { recordsSender = options.recordsSenders } = request.routeOptions.config;
    // Asked for while the body comes.
    if (senders && recordsSender && isWrite(request.method)) void uidOf(request.raw.socket);
    if (request.is404) return done(notFound(request, reply, routes));
    if (!isLimitedCall) return done();
    const spend = (uid?: Uid) => {
      const seconds = budget.spend(peerOf(request.raw.socket.remoteAddress, uid));
      if (seconds === undefined) return done();
      done(new HostError('HF_HTTP_BUDGET', { surface: name, seconds }));
    };
    if (socket === undefined && !options.recordsSenders) return spend();
    void uidOf(request.raw.socket).then(spend);
  });
  app.addHook('preHandler', (request, _reply, done) => {
    const { recordsSender = options.recordsSenders } = request.routeOptions.config;
    if (!senders || !recordsSender || !isWrite(request.method)) return done();
    void uidOf(request.raw.socket).then((uid) => {
      if (uid !== undefined) senders.set(request.id, uid);
      done();
    });
  });
  app.addHook('onSend', (request, reply, _payload, done) => {
    // Node would wait for the body nonetheless, and answer 408 as well when it does not come.
    if (hasUnreadBody(request.raw)) reply.header('connection', 'close');
    done();
  });
  app.setErrorHandler(answer);
  const http: HttpSurface = Object.assign(app, {
    draining: requests.draining,
    onUnhandled: (listener: UnhandledListener) => requests.onUnhandled(listener),
  });

  let closing: Promise<void> | undefined;
  let removeSocket: (() => void) | undefined;
  let served: ServedCertificate | undefined;
  return {
    name,
    http,
    async listen({ maxConnections, onPlace } = {}) {
      if (maxConnections !== undefined) limitConnections(app, maxConnections, requests, log);
      if (tokenRequired && !token()) {
        throw isExposed
          ? new HostError('HF_HTTP_TOKEN_REQUIRED', { surface: name, host })
          : new HostError('HF_HTTP_TOKEN_MISSING', { surface: name, option: "auth: 'token'" });
      }
      if (options.secretsNeedToken && socket === undefined && !token()) {
        throw new HostError('HF_HTTP_TOKEN_MISSING', { surface: name, option: 'secretsNeedToken' });
      }
      if (isExposed && !tls && options.insecure !== true) {
        throw new HostError('HF_HTTP_TLS_REQUIRED', { surface: name, host });
      }
      let url: string;
      let bound: string | undefined;
      const place = (): Place => ({
        url,
        ...(bound !== undefined && { bound }),
        ...(served && { tls: served.status }),
        ...(tokenFile !== undefined && { tokenFile }),
      });
      if (socket === undefined) {
        const { server: listener } = app;
        if (tls && listener instanceof TlsServer) {
          const use = ({ cert, key }: KeyPair) => listener.setSecureContext({ ...TLS, cert, key });
          const onStatus = () => onPlace?.(place());
          served = new ServedCertificate({ surface: name, files: tls, logger: log, use, onStatus });
        }
        try {
          await app.listen({ port, host });
        } catch (error) {
          throw listenError(error, { surface: name, host, port, variable: portVariable });
        }
        const { address, port: boundPort } = app.server.address() as AddressInfo;
        url = urlOf(scheme, address, boundPort);
        bound = `${bracketed(address)}:${boundPort}`;
      } else {
        const listening = await listenOnSocket(app, socket, options.isControl ? undefined : name);
        removeSocket = listening.remove;
        url = `unix:${listening.path}`;
      }
      log.info({ url, bound }, 'http.listening');
      return place();
    },
    close(deadlineMs) {
      closing ??= (async () => {
        const cut = await requests.drain(deadlineMs);
        if (cut > 0) log.warn({ requests: cut, deadlineMs }, 'http.cut');
        await onItsWay(app);
        await app.close();
        served?.stop();
        removeSocket?.();
      })();
      return closing;
    },
  };
}

/** How long clients with an open connection are still answered that the surface stops, milliseconds. */
const LINGER_MS = 200;

/**
 * Lets requests arrive that were sent before their client could know of the end: a connection that is closed with a request
 * unread is reset, and the client of a reset connection cannot know whether its call was carried out.
 */
async function onItsWay({ server }: Pick<FastifyInstance, 'server'>): Promise<void> {
  const open = await new Promise<number>((resolve) =>
    server.getConnections((_error, count) => resolve(count ?? 0)),
  );
  if (open > 0) await setTimeout(LINGER_MS);
  await setImmediate(); // right after all that has come was accepted and read
}

/** Writes, and the reads that record something. */
function isCounted({ method, routeOptions }: FastifyRequest): boolean {
  return isWrite(method) || routeOptions.config.writes?.types === 'any';
}

function limitConnections(
  { server }: Pick<FastifyInstance, 'server'>,
  maxConnections: number,
  requests: OpenRequests,
  log: Logger,
): void {
  server.maxConnections = maxConnections;
  let isFull = false;
  server.on('drop', () => {
    requests.refused(503);
    if (!isFull) log.warn({ maxConnections }, 'http.connections_full');
    isFull = true;
  });
  server.on('connection', () => {
    isFull = false;
  });
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url ?? '(none)';
}

function notFound(request: FastifyRequest, reply: FastifyReply, routes: PathMethods): HoldfastError {
  const path = shownPath(request);
  const methods = routes.methodsOf(request.url.split('?', 1)[0] ?? '');
  if (methods.length === 0) return new HostError('HF_HTTP_NOT_FOUND', { method: request.method, path });
  const allow = methods.join(', ');
  reply.header('allow', allow);
  return new HostError('HF_HTTP_METHOD', { method: request.method, path, allow });
}

function listenError(
  error: unknown,
  details: { surface: string; host: string; port: number; variable: string },
): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const reasons: Readonly<Record<string, string>> = {
    EADDRINUSE: 'another process holds the port',
    EACCES: 'this user may not use the port',
    EADDRNOTAVAIL: 'this machine does not have the address',
    ENOTFOUND: 'the host name is not known',
  };
  if (!Object.hasOwn(reasons, code)) return error;
  return new HostError('HF_HTTP_LISTEN', { ...details, reason: reasons[code] }, { cause: error });
}

/** Stands for a compiler of schemas; Fastify asks for one only where a route has a schema. */
function noSchemas(): never {
  throw new TypeError('a route of a surface has no schema');
}
