import type { IncomingHttpHeaders } from 'node:http';
import type { RouteOptions } from 'fastify';
import { HostError } from '../errors/host-error.ts';
import { maskText } from '../logging/mask-text.ts';

/**
 * How the bodies of one route's writes differ from JSON. A route declares it in its `config`; without it every write of
 * every surface takes `application/json` alone, which no page of another origin can send without asking first.
 */
export interface WriteException {
  /**
   * The media types that are taken; `any` where the body is ignored and the address alone counts; `handler` where the
   * route's own protocol says how another type is refused.
   */
  readonly types: readonly string[] | 'any' | 'handler';
  /** Why the route needs it. */
  readonly because: string;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    readonly writes?: WriteException;
  }
}

const READING: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const JSON_ALONE: readonly string[] = ['application/json'];

/** @returns whether a request may change something: any method but GET, HEAD and OPTIONS */
export const isWrite = (method: string | undefined): boolean => !READING.has(method ?? '');

export interface OriginRules {
  /** Names beyond loopback under which the surface is served, in lower case; a proxy in front may speak TLS for them. */
  readonly proxiedNames: ReadonlySet<string>;
  /** Origin under which browsers see the surface, e.g. `https://gw.example`, where it is known. */
  readonly publicOrigin?: string | undefined;
}

/**
 * Refuses what a browser sends for a page of another origin. A page on another port of this machine is one: scheme, host
 * and port count. A client without a browser sends neither header.
 *
 * @param host the request's `Host`, which the surface serves
 * @throws HF_HTTP_ORIGIN
 */
export function refuseForeignPage(headers: IncomingHttpHeaders, host: string, rules: OriginRules): void {
  const { origin } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw new HostError('HF_HTTP_ORIGIN');
  if (origin !== undefined && !isOwnOrigin(origin, host, rules)) throw new HostError('HF_HTTP_ORIGIN');
}

function isOwnOrigin(origin: string, host: string, { proxiedNames, publicOrigin }: OriginRules): boolean {
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  if (page.origin === 'null') return false;
  if (page.origin === publicOrigin || page.origin === originOf('http', host)) return true;
  // Behind a proxy the Host may be the proxy's name for this surface, or this surface's own.
  return page.protocol === 'https:' && proxiedNames.has(page.hostname) && page.port === '';
}

function originOf(scheme: string, host: string): string | undefined {
  const text = `${scheme}://${host}`;
  return URL.canParse(text) ? new URL(text).origin : undefined;
}

/**
 * Makes a route refuse the bodies of writes that are not of its types, before they are read and after its surface has
 * decided who may call.
 */
export function requireMediaTypes(route: RouteOptions): void {
  const { types } = route.config?.writes ?? { types: JSON_ALONE };
  if (typeof types === 'string' || ![route.method].flat().some(isWrite)) return;
  const own = [route.onRequest ?? []].flat();
  route.onRequest = [
    ...own,
    ({ method, headers }, _reply, done) => {
      if (isWrite(method)) refuseMediaType(headers, types);
      done();
    },
  ];
}

/** A write without a body needs no type; a type that is named must be one of the route's. */
function refuseMediaType(headers: IncomingHttpHeaders, types: readonly string[]): void {
  const header = headers['content-type'];
  if (header === undefined) {
    const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
    if (encoding === undefined && Number(length) === 0) return;
  } else if (types.includes(header) || types.includes(mediaType(header))) return;
  throw new HostError('HF_HTTP_MEDIA_TYPE', {
    type: header === undefined ? '(none)' : maskText(header, 200),
    types: types.join(' or '),
  });
}

const mediaType = (header: string): string => header.split(';', 1)[0]?.trim().toLowerCase() ?? '';
