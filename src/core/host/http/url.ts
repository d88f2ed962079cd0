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
