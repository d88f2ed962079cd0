import { isAbsolute, join, relative } from 'node:path';

/** A host as URLs have it: an IPv6 address in brackets. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

/** The host of a URL as sockets take it: an IPv6 address without brackets. */
export function hostOf({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[|\]$/g, '');
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

const SOCKET = 'unix:';
const SOCKET_URL = 'http+unix:';

/** @returns whether an address is that of a Unix socket, `unix:<path>` */
export const isSocketBase = (base: string): boolean => base.startsWith(SOCKET);

/**
 * Where a client's calls go.
 *
 * @param url `http://…`, `https://…`, `unix:<path of a socket>`, or what `urlForPaths` makes of that, with a path
 * @returns the path of the socket, where it is one, and the URL to ask for, without a slash at its end
 */
export function placeOf(url: string): { readonly socketPath?: string; readonly root: string } {
  if (isSocketBase(url)) return { socketPath: url.slice(SOCKET.length), root: 'http://localhost' };
  const root = url.replace(/\/+$/, '');
  if (!url.startsWith(`${SOCKET_URL}//`)) return { root };
  const [, socket = '', rest = ''] = /^http\+unix:\/\/([^/]*)(.*)$/.exec(root) ?? [];
  return { socketPath: decodeURIComponent(socket), root: `http://localhost${rest}` };
}

/** An address to which paths can be appended, e.g. `http+unix://%2Frun%2Fs.sock` of `unix:/run/s.sock`. */
export function urlForPaths(url: string): string {
  return isSocketBase(url) ? `${SOCKET_URL}//${encodeURIComponent(url.slice(SOCKET.length))}` : url;
}

/** The origin of a URL, and of one that `urlForPaths` made, which `URL` calls null. */
export function originOf({ origin, protocol, host }: URL): string {
  return protocol === SOCKET_URL ? `${protocol}//${host}` : origin;
}

/** Where a request comes from: the address of its sender, or `socket` for one through a Unix socket. */
export function sourceOf({ ip }: { readonly ip: string | undefined }): string {
  return ip ?? 'socket';
}
