import { readTokenFile } from '../secrets/token-file.ts';
import type { Place } from './contract.ts';

/** What a call to a surface of our own begins with: `base` and `headers` of an `HttpCall`. */
export interface OwnSurface {
  readonly base: string;
  /** With the surface's token, where it has one. */
  readonly headers: Readonly<Record<string, string>>;
  /** Fingerprint of the certificate that it serves, where it speaks TLS. */
  readonly pin: string | undefined;
  /** The address is this machine's own, whichever it is. */
  readonly insecure: true;
}

/**
 * How a program on this machine calls a surface of an instance: where `runtime.json` says that it listens, with the token
 * whose file it names, and with the certificate that it serves, whatever name that is for.
 *
 * @throws HF_CONFIG_SECRET_* the token cannot be read, e.g. because it belongs to another user
 */
export function ownSurface(place: Place): OwnSurface {
  const token = ownToken(place);
  const headers = { ...(token !== undefined && { authorization: `Bearer ${token}` }) };
  return { base: place.url, headers, pin: place.tls?.fingerprint, insecure: true };
}

/** @returns fingerprint of the certificate at a URL below a surface of an instance; undefined for any other URL, and without TLS */
export function pinAt(
  surfaces: Readonly<Record<string, Place>> | undefined,
  url: string,
): string | undefined {
  const places = Object.values(surfaces ?? {});
  return places.find((place) => url === place.url || url.startsWith(`${place.url}/`))?.tls?.fingerprint;
}

/** @returns the token of a surface, where it has one @throws HF_CONFIG_SECRET_* it cannot be read */
export function ownToken({ tokenFile }: Pick<Place, 'tokenFile'>): string | undefined {
  return tokenFile === undefined ? undefined : readTokenFile(tokenFile);
}
