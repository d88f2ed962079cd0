import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { isIP, type Socket } from 'node:net';
import ipaddr from 'ipaddr.js';
import { HostError } from '../errors/host-error.ts';
import { isWrite, type OriginRules, refuseForeignPage } from './write-rules.ts';

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
  /** The bearer token that is asked for; absent when none is. */
  readonly token?: (() => string | undefined) | undefined;
}

/**
 * The checks that every request must pass before a handler, in this order: well-formed target and Host (a foreign page
 * could point its own name at this machine), origin of writes (a foreign page could post here), bearer token.
 */
export class Admission {
  readonly #names: ReadonlySet<string>;
  readonly #token: (() => string | undefined) | undefined;
  readonly #checkReads: boolean;
  readonly #origins: OriginRules;
  /** The newest Host header that is served at whatever address it came to. */
  #served: string | undefined;

  constructor({ host, allowedHosts, checkOriginOfReads = false, publicOrigin, token }: AdmissionOptions) {
    this.#names = new Set([host, 'localhost', ...allowedHosts].map(plainName));
    this.#checkReads = checkOriginOfReads;
    this.#origins = { proxiedNames: new Set(allowedHosts.map(plainName)), publicOrigin };
    this.#token = token;
  }

  /**
   * @throws HF_HTTP_REQUEST_INVALID the target is not a path, the Host header is missing or given twice, or the
   *   Transfer-Encoding is another than `chunked`
   * @throws HF_HTTP_HOST, HF_HTTP_ORIGIN, HF_HTTP_UNAUTHORIZED
   */
  check({ headers, rawHeaders, method, url, socket }: IncomingMessage): void {
    if (!url?.startsWith('/') && url !== '*') invalid('its target is not a path');
    if (headers.host === undefined) invalid('it has no Host header');
    if (countHosts(rawHeaders) > 1) invalid('it has more than one Host header');
    const { 'transfer-encoding': encoding } = headers;
    // Node joins what was sent twice; a proxy in front may have read only one of them.
    if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') {
      invalid('its Transfer-Encoding is another than chunked, or given twice');
    }
    if (!this.#serves(headers.host, socket)) throw new HostError('HF_HTTP_HOST');
    if (isWrite(method) || (this.#checkReads && headers.origin !== undefined)) {
      refuseForeignPage(headers, headers.host, this.#origins);
    }
    if (this.#token && !isToken(headers.authorization, this.#token())) {
      throw new HostError('HF_HTTP_UNAUTHORIZED');
    }
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

/** Compares in a time that depends on neither value; hashing first makes their lengths equal. */
function isToken(authorization: string | undefined, token: string | undefined): boolean {
  const given = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
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
 * Where something goes that everybody on the way can read.
 *
 * @param url `http://…`, or another
 * @returns its host and port when it is plaintext and leaves this machine; undefined otherwise
 */
export function plaintextHost(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { protocol, hostname, host } = new URL(url);
  return protocol === 'http:' && !isLoopback(hostname.replace(/^\[|\]$/g, '')) ? host : undefined;
}
