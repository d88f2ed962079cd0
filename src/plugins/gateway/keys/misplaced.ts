import type { IncomingHttpHeaders } from 'node:http';
import type { Misplaced } from '../../../machines/mcp-access.ts';
import { keyId, sameKey } from './key-id.ts';
import type { KeyRegistry } from './registry.ts';
import { SHORTEST_KEY } from './request.ts';

/** By which a virtual key admits, on every route. */
export const ADMISSION_HEADER = 'x-gateway-api-key';

/** What no text without a key in it need be taken apart for. */
const LONG_WORD = new RegExp(`[^\\s,;"]{${SHORTEST_KEY}}`);

/** More parts than any text has that means well: of a header, and of all that one request is searched for. */
const MOST_PARTS = 16;
const MOST_SEARCHED = 128;

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
  return kindOf(partsOf(header), known);
}

/**
 * Looks for a key where none belongs (G9, G25): in every header but the two that are looked at by themselves, in the
 * path and in the query. A header with one is taken out, so that nothing passes it on.
 *
 * @param request its headers are changed; only values of 20 characters or more are looked at here
 */
export function takeMisplaced(
  { headers, rawHeaders, url = '' }: Received,
  known: KnownKeys,
): Misplaced | undefined {
  const found: Misplaced[] = [];
  let left = MOST_SEARCHED;
  const search = (name: string, text: string): boolean => {
    const parts = longParts(text).slice(0, Math.max(0, left));
    left -= parts.length;
    const key = kindOf(parts, known);
    // A name as long as a key may be one.
    if (key) found.push({ key, where: name.length < SHORTEST_KEY ? `header ${name}` : 'a header' });
    return key !== undefined;
  };
  const holding: string[] = [];
  let names = 0;
  for (const name in headers) {
    names += 1;
    if (name === ADMISSION_HEADER || name === 'authorization') continue;
    const value = headers[name];
    const text = Array.isArray(value) ? value.join(' ') : value;
    if (text === undefined || text.length < SHORTEST_KEY) continue;
    if (name === 'mcp-session-id' && known.isSession(text)) continue;
    if (search(name, text)) holding.push(name);
  }
  if (rawHeaders.length > 2 * names) {
    for (const [name, text] of notKept(headers, rawHeaders)) search(name, text);
  }
  for (const name of holding) delete headers[name];
  const inUrl = keyInUrl(url, known);
  if (inUrl) found.push(inUrl);
  return found.find(({ key }) => key === 'master_key') ?? found[0];
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
  if (url.length < SHORTEST_KEY) return undefined;
  const at = url.indexOf('?');
  const [path, query] = at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
  for (const [where, text] of [
    ['query', query],
    ['path', path],
  ] as const) {
    const key = kindOf(longParts(text).map(decoded).slice(0, MOST_SEARCHED), known);
    if (key !== undefined) return { key, where };
  }
  return undefined;
}

function kindOf(values: readonly string[], { keys, masterId }: KnownKeys): Misplaced['key'] | undefined {
  const ids = values.map(keyId);
  if (ids.some((id) => sameKey(id, masterId))) return 'master_key';
  return ids.some((id) => keys.find(id) !== undefined) ? 'virtual_key' : undefined;
}

function partsOf(header: string): string[] {
  const words = header.split(/[\s,;"]+/, MOST_PARTS).filter((word) => word !== '' && !/^bearer$/i.test(word));
  const basic = /^basic\s+(\S+)/i.exec(header.trim())?.[1];
  if (basic === undefined) return words;
  return [...words, ...Buffer.from(basic, 'base64').toString('latin1').split(':', MOST_PARTS)];
}

/** Whatever of a text may be a key: its words, and what stands behind a name in them. */
function longParts(text: string): string[] {
  if (!LONG_WORD.test(text)) return [];
  const words = partsOf(text).flatMap((word) => [word, ...word.split(/[=&?/:|'()<>[\]{}]+/, MOST_PARTS)]);
  return [...new Set(words)].filter((word) => word.length >= SHORTEST_KEY);
}

function decoded(text: string): string {
  try {
    return text.includes('%') ? decodeURIComponent(text) : text;
  } catch {
    return text;
  }
}
