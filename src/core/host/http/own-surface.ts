import { readTokenFile } from '../secrets/token-file.ts';
import type { Place } from './contract.ts';

/** What a call to a surface of our own begins with: `base` and `headers` of an `HttpCall`. */
export interface OwnSurface {
  readonly base: string;
  /** With the surface's token, where it has one. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * How a program on this machine calls a surface of an instance: where `runtime.json` says that it listens, with the token
 * whose file it names.
 *
 * @throws HF_CONFIG_SECRET_* the token cannot be read, e.g. because it belongs to another user
 */
export function ownSurface(place: Place): OwnSurface {
  const token = ownToken(place);
  return { base: place.url, headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }) } };
}

/** @returns the token of a surface, where it has one @throws HF_CONFIG_SECRET_* it cannot be read */
export function ownToken({ tokenFile }: Pick<Place, 'tokenFile'>): string | undefined {
  return tokenFile === undefined ? undefined : readTokenFile(tokenFile);
}
