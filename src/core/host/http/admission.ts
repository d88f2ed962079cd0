import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { RouteOptions } from 'fastify';
import ipaddr from 'ipaddr.js';
import { HostError } from '../errors/host-error.ts';
import { maskText } from '../logging/mask-text.ts';

const HOST = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i;

/** @returns whether only programs of this machine reach an address, given as host name or address */
export function isLoopback(host: string): boolean {
  if (host === 'localhost') return true;
  return isIP(host) !== 0 && ipaddr.process(host).range() === 'loopback';
}

/** What decides whether a request may reach a handler at all. */
export interface AdmissionOptions {
  /** The address the surface is bound to. */
  readonly host: string;
  readonly allowedHosts: readonly string[];
  /** Whether the origin of reading requests matters too. */
  readonly checkOriginOfReads?: boolean;
  /** Origin under which browsers see it, e.g. `https://gw.example`; absent when only its Host header says. */
  readonly publicOrigin?: string | undefined;
  /** How it is spoken to; `http` unless set. */
  readonly scheme?: 'http' | 'https';
  /** The surface's token; undefined where it has none. */
  readonly token: () => string | undefined;
  /** A header in which it may come too, in lower case. */
  readonly tokenHeader?: string | undefined;
  /** Whether every caller needs it. */
  readonly tokenRequired: boolean;
  /** Whether routes that are declared `secret` need it. */
  readonly secretsNeedToken?: boolean;
}

/**
 * Whom a route serves, where that is not what its surface says: `open` anybody who reaches it; `secret` only who has the
 * surface's token, where the surface protects its secrets so, because the answer holds some.
 */
export type RouteCredential = 'open' | 'secret';

/**
 * The checks that every request must pass before a handler, in this order: well-formed target and Host (a foreign page
 * could point its own name at this machine), origin of writes (a foreign page could post here), bearer token.
 */
export class Admission {
  readonly #names: ReadonlySet<string>;
  readonly #token: () => string | undefined;
  readonly #tokenHeader: string | undefined;
  readonly #tokenRequired: boolean;
  readonly #secretsNeedToken: boolean;
  readonly #checkReads: boolean;
  readonly #origins: OriginRules;
  /** The newest Host header that is served at whatever address it came to. */
  #served: string | undefined;

  constructor({
    host,
    allowedHosts,
    checkOriginOfReads = false,
    publicOrigin,
    scheme = 'http',
    ...rest
  }: AdmissionOptions) {
    this.#names = new Set([host, 'localhost', ...allowedHosts].map(plainName));
    this.#checkReads = checkOriginOfReads;
    this.#origins = { proxiedNames: new Set(allowedHosts.map(plainName)), publicOrigin, scheme };
    this.#token = rest.token;
    this.#tokenHeader = rest.tokenHeader;
    this.#tokenRequired = rest.tokenRequired;
    this.#secretsNeedToken = rest.secretsNeedToken ?? false;
  }

  /**
   * @param acts whether it does something, as writes do and few reads
   * @param pages other origins whose pages may call this route
   * @throws HF_HTTP_REQUEST_INVALID the target is not a path, the Host header is missing or given twice, or the
   *   Transfer-Encoding is another than `chunked`
   * @throws HF_HTTP_HOST, HF_HTTP_ORIGIN, HF_HTTP_UNAUTHORIZED; HF_HTTP_SECRETS of a `secret` route
   */
  check(
    { headers, rawHeaders, method, url, socket }: IncomingMessage,
    {
      credential,
      acts = isWrite(method),
      pages,
    }: {
      credential?: RouteCredential | undefined;
      acts?: boolean;
      pages?: ReadonlySet<string> | undefined;
    } = {},
  ): void {
    if (!url?.startsWith('/') && url !== '*') invalid('its target is not a path');
    if (headers.host === undefined) invalid('it has no Host header');
    if (countHosts(rawHeaders) > 1) invalid('it has more than one Host header');
    const { 'transfer-encoding': encoding } = headers;
    // Node joins what was sent twice; a proxy in front may have read only one of them.
    if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') {
      invalid('its Transfer-Encoding is another than chunked, or given twice');
    }
    if (!this.#serves(headers.host, socket)) throw new HostError('HF_HTTP_HOST');
    const isInvited = pages !== undefined && headers.origin !== undefined && pages.has(headers.origin);
    if (!isInvited && (acts || (this.#checkReads && headers.origin !== undefined))) {
      refuseForeignPage(headers, headers.host, this.#origins);
    }
    if (credential === 'open') return;
    if (this.#tokenRequired && !this.#hasToken(headers)) throw new HostError('HF_HTTP_UNAUTHORIZED');
    const isSecret = credential === 'secret' && this.#secretsNeedToken;
    if (isSecret && !this.#hasToken(headers)) throw new HostError('HF_HTTP_SECRETS');
  }

  #hasToken(headers: IncomingHttpHeaders): boolean {
    const bearer = bearerOf(headers);
    const other = this.#tokenHeader === undefined ? undefined : headers[this.#tokenHeader];
    return isSameSecret(typeof other === 'string' ? other : bearer, this.#token());
  }

  #serves(header: string, socket: Pick<Socket, 'localAddress'>): boolean {
    if (header === this.#served) return true;
    const matched = HOST.exec(header)?.[1];
    if (matched === undefined) return false;
    const name = plainName(matched);
    if (!this.#names.has(name)) {
      if (isIP(name) === 0) return false;
      // By address there is nothing to rebind: the caller named the very address it connected to.
      if (!isLoopback(name)) return sameAddress(name, socket.localAddress);
    }
    this.#served = header;
    return true;
  }
}

/** The token of an `Authorization: Bearer` header. */
export function bearerOf({
  authorization = '',
}: {
  readonly authorization?: string | undefined;
}): string | undefined {
  return /^bearer +(\S+)$/i.exec(authorization)?.[1];
}

/** Compares in a time that depends on neither value; hashing first makes their lengths equal. */
export function isSameSecret(given: string | undefined, token: string | undefined): boolean {
  if (given === undefined || token === undefined || token === '') return false;
  return timingSafeEqual(hash('sha256', given, 'buffer'), hash('sha256', token, 'buffer'));
}

function plainName(host: string): string {
  return host.toLowerCase().replace(/^\[|\]$|\.$/g, '');
}

function sameAddress(name: string, address: string | undefined): boolean {
  if (address === undefined || isIP(address) === 0) return false;
  return ipaddr.process(name).toNormalizedString() === ipaddr.process(address).toNormalizedString();
}

/** Node keeps the first of several Host headers; a proxy in front may have looked at another. */
function countHosts(rawHeaders: readonly string[]): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

function invalid(reason: string): never {
  throw new HostError('HF_HTTP_REQUEST_INVALID', { reason });
}

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
    readonly credential?: RouteCredential;
    /** Origins of other pages that may call it, exact as browsers write them; none unless set. */
    readonly pages?: ReadonlySet<string>;
    /** Whether a write is recorded with the user of this machine who sent it; as the surface says unless set. */
    readonly recordsSender?: boolean;
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
  readonly scheme: 'http' | 'https';
}

/**
 * Refuses what a browser sends for a page of another origin. A page on another port of this machine is one: scheme, host
 * and port count. A client without a browser sends neither header.
 *
 * @param host the request's `Host`, which the surface serves
 * @throws HF_HTTP_ORIGIN
 */
function refuseForeignPage(headers: IncomingHttpHeaders, host: string, rules: OriginRules): void {
  const { origin } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw new HostError('HF_HTTP_ORIGIN');
  if (origin !== undefined && !isOwnOrigin(origin, host, rules)) throw new HostError('HF_HTTP_ORIGIN');
}

function isOwnOrigin(
  origin: string,
  host: string,
  { proxiedNames, publicOrigin, scheme }: OriginRules,
): boolean {
  if (!URL.canParse(origin)) return false;
  const page = new URL(origin);
  if (page.origin !== origin) return false; // as a browser writes it: no user, no blob, nothing behind the port
  if (page.origin === publicOrigin || page.origin === originOf(scheme, host)) return true;
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
