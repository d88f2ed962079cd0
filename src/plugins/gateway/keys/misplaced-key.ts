import type { IncomingHttpHeaders } from 'node:http';
import { MOST_DECODED, percentDecoded } from '../../../core/host/percent-encoding.ts';
import type { Misplaced } from '../../../machines/gateway/key.ts';
import { type KeyRegistry, keyId, sameKey } from './directory.ts';
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

/** More long parts than any text has that means well. */
const MOST_PARTS = 128;

const BETWEEN_WORDS = /[\s,;"]+/;
const BETWEEN_PIECES = /[=&?/:|'()<>[\]{}]+/;
/** The space of a form, what names a user or a fragment in a URL, and encoded characters that no key has: a line's end. */
const WITHIN_PIECES = /(?:[+@#\\]|%(?:[01][\da-f]|7f|[89a-f][\da-f]))+/i;
const IN_PIECES = /[=&?/:|'()<>[\]{}%+@#\\]/;
const BASIC = /(?<![\w-])basic[\s+]+([\w+/-]+)/gi;

/**
 * Whether a text has a word that may be a key: no text without one need be taken apart. It looks from the end of where
 * such a word would be, so most of a text is not looked at.
 */
function hasLongWord(text: string, shortest: number): boolean {
  for (let start = 0; start + shortest <= text.length; ) {
    let at = start + shortest - 1;
    while (at >= start && !endsWord(text.charCodeAt(at))) at -= 1;
    if (at < start) return true;
    start = at + 1;
  }
  return false;
}

/** No key has a space; it may have any other sign at which words end. */
const endsWord = (code: number): boolean => code <= 0x20;

/**
 * Whatever of a text may be a key: all of it, its words, what stands behind a name in them and between their signs, what
 * is in `Basic`, and all of that under percent-encoding.
 *
 * @param shortest characters of a key
 * @returns at most 128
 */
function keyParts(text: string, shortest: number): readonly string[] {
  const found = new Set<string>();
  gather(found, text, shortest, MOST_DECODED);
  return [...found];
}

function gather(found: Set<string>, text: string, shortest: number, decodings: number): void {
  for (const part of partsOf(text)) {
    if (found.size >= MOST_PARTS) return;
    if (part.length < shortest || found.has(part)) continue;
    found.add(part);
    const plain = decodings > 0 ? percentDecoded(part) : part;
    if (plain !== part) gather(found, plain, shortest, decodings - 1);
  }
}

function* partsOf(text: string): Generator<string> {
  yield text.trim().replace(/^bearer[\s+]+/i, '');
  for (const word of text.split(BETWEEN_WORDS)) {
    if (word === '' || /^bearer$/i.test(word)) continue;
    yield word;
    if (!IN_PIECES.test(word)) continue;
    for (const piece of word.split(BETWEEN_PIECES)) {
      yield piece;
      yield* piece.split(WITHIN_PIECES);
    }
    for (const pair of word.split(/[?&]/)) {
      yield pair;
      yield pair.slice(pair.indexOf('=') + 1); // what is between signs may have some at its own end: =
    }
  }
  for (const [, basic = ''] of text.matchAll(BASIC)) {
    const login = Buffer.from(basic, 'base64').toString('latin1').trim();
    yield* login.split(':');
    yield login.slice(login.indexOf(':') + 1); // the key itself may have one
  }
}
