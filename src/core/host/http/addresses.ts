import { isAbsolute, join, relative } from 'node:path';

/** A host as URLs have it: an IPv6 address in brackets. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/**
 * Where a listener is reached from this machine.
 *
 * @param host that it is bound to: a wildcard address is no destination, and loopback always reaches it
 */
export function urlOf(scheme: 'http' | 'https', host: string, port: number): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return `${scheme}://${bracketed(reachable)}:${port}`;
}

/** A unix socket's name has room for 108 bytes, its end included. */
const LONGEST = 107;

/** The name of a data folder's control socket. */
export function controlSocket(dataDir: string): string {
  return join(dataDir, 'control.sock');
}

/** The shorter of a socket's absolute path and the one from here, for a deep data folder leaves little room. */
export function nearPath(file: string): string {
  const near = isAbsolute(file) ? relative(process.cwd(), file) : file;
  return Buffer.byteLength(file) <= LONGEST || near.length >= file.length ? file : near;
}
