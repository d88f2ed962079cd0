import type { IncomingHttpHeaders } from 'node:http';
import type { Misplaced } from '../../../machines/gateway/key.ts';
import { keyId, sameKey } from './key-id.ts';
import { hasLongWord, keyParts, MOST_PARTS } from './key-parts.ts';
import type { KeyRegistry } from './registry.ts';
import { SHORTEST_KEY } from './request.ts';

/** By which a virtual key admits, on every route. */
export const ADMISSION_HEADER = 'x-gateway-api-key';

/** Where a key is that came in `Authorization`. */
export const IN_AUTHORIZATION = 'header authorization';

/** What keys are known by. */
export interface KnownKeys {
  readonly keys: Pick<KeyRegistry, 'find'>;
  /** Id of the master key. */
  readonly masterId: string;
  /** Tells a session's id of our own making, which is no key. */
  readonly isSession: (value: string) => boolean;
}

/** A request as it came. */
export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  /** Path and query. */
  readonly url?: string | undefined;
}

/** A key in any part of a header, whatever its scheme: it leaks the same in each. */
export function keyIn(header: string, known: KnownKeys): Misplaced['key'] | undefined {
  return kindOf(keyParts(header, 1), known);
}

/** The one of several that is told: with the master key all of them are in danger. */
export const gravest = (found: readonly Misplaced[]): Misplaced | undefined =>
  found.find(({ key }) => key === 'master_key') ?? found[0];

/**
 * Looks for a key where none belongs (G9, G25): in every header but the two that are looked at by themselves, in the
 * path and in the query. A header with one is taken out, so that nothing passes it on.
 *
 * @param request its headers are changed; only values of 20 characters or more are looked at here
 */
export function takeMisplaced(request: Received, known: KnownKeys): Misplaced | undefined {
  return mayHoldKey(request, known) ? gravest(search(request, known)) : undefined;
}

/** Every call comes by here, and hardly any goes on. */
function mayHoldKey({ headers, rawHeaders, url = '' }: Received, known: KnownKeys): boolean {
  let names = 0;
  for (const name in headers) {
    names += 1;
    if (suspectIn(name, headers[name], known) !== undefined) return true;
  }
  return rawHeaders.length > 2 * names || hasLongWord(url, SHORTEST_KEY);
}

/** @returns what of a header is to be searched */
function suspectIn(name: string, value: string | string[] | undefined, known: KnownKeys): string | undefined {
  if (name === ADMISSION_HEADER || name === 'authorization') return undefined;
  const text = typeof value === 'string' ? value : (value?.join(' ') ?? '');
  if (!hasLongWord(text, SHORTEST_KEY)) return undefined;
  return name === 'mcp-session-id' && known.isSession(text) ? undefined : text;
}

function search({ headers, rawHeaders, url = '' }: Received, known: KnownKeys): readonly Misplaced[] {
  const found: Misplaced[] = [];
  let left = MOST_PARTS;
  const holds = (name: string, text: string): boolean => {
    const parts = keyParts(text, SHORTEST_KEY).slice(0, left);
    left -= parts.length;
    const key = kindOf(parts, known);
    // A name as long as a key may be one.
    if (key) found.push({ key, where: name.length < SHORTEST_KEY ? `header ${name}` : 'a header' });
    return key !== undefined;
  };
  const names = Object.keys(headers);
  const holding = names.filter((name) => {
    const text = suspectIn(name, headers[name], known);
    return text !== undefined && holds(name, text);
  });
  if (rawHeaders.length > 2 * names.length) {
    for (const [name, text] of notKept(headers, rawHeaders)) holds(name, text);
  }
  for (const name of holding) delete headers[name];
  const inUrl = keyInUrl(url, known);
  return inUrl ? [...found, inUrl] : found;
}

/** Of some headers Node keeps the first value alone; what it drops goes no further, but somebody sent it. */
function* notKept(
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
): Generator<[name: string, text: string]> {
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = '', text = ''] = [rawHeaders[at]?.toLowerCase(), rawHeaders[at + 1]];
    const kept = headers[name];
    if (kept !== undefined && text.length >= SHORTEST_KEY && !kept.includes(text)) yield [name, text];
  }
}

/** @param url path and query as they came */
export function keyInUrl(url: string, known: KnownKeys): Misplaced | undefined {
  if (!hasLongWord(url, SHORTEST_KEY)) return undefined;
  const at = url.indexOf('?');
  const [path, query] = at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
  for (const [where, text] of [
    ['query', query],
    ['path', path],
  ] as const) {
    const key = kindOf(keyParts(text, SHORTEST_KEY), known);
    if (key !== undefined) return { key, where };
  }
  return undefined;
}

function kindOf(values: readonly string[], { keys, masterId }: KnownKeys): Misplaced['key'] | undefined {
  const ids = values.map(keyId);
  if (ids.some((id) => sameKey(id, masterId))) return 'master_key';
  return ids.some((id) => keys.find(id) !== undefined) ? 'virtual_key' : undefined;
}
