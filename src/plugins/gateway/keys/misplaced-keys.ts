/**
 * The search for keys in places where they leak (G9, G25): in headers other than the one for keys, in the path and in the
 * query. Such a key is reported by an alert, and its header does not reach the upstream.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { MOST_DECODED, percentDecoded } from '../../../core/host/logging/mask-text.ts';
import type { MisplacedKey, RejectionRule } from '../../../machines/gateway/call-shapes.ts';
import { SHORTEST_KEY } from './request.ts';
import { KEY_HEADER, type KeyLookup, keyId } from './virtual-keys.ts';

/** `MisplacedKey.where` of a key that came in `Authorization`. */
export const IN_AUTHORIZATION = 'header authorization';

/** A request as it came. */
export interface ReceivedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  /** Path and query. */
  readonly url?: string | undefined;
}

/** @returns what kind of key any part of a header is, whatever its scheme */
export function keyIn(header: string, keys: KeyLookup): MisplacedKey['key'] | undefined {
  return kindOf(candidatesIn(header, 1), keys);
}

/** @returns the one to report: a master key endangers all other keys, so it comes first */
export const mostSevere = (found: readonly MisplacedKey[]): MisplacedKey | undefined =>
  found.find(({ key }) => key === 'master_key') ?? found[0];

/**
 * Searches all headers except the key header and `Authorization`, which are checked separately, and the URL.
 *
 * @param request the headers that hold a key are deleted from it, so that they are not forwarded
 */
export function removeMisplacedKey(request: ReceivedRequest, keys: KeyLookup): MisplacedKey | undefined {
  return mayHoldKey(request, keys) ? mostSevere(search(request, keys)) : undefined;
}

/** A cheap test that most requests fail, so that they are not searched. */
function mayHoldKey({ headers, rawHeaders, url = '' }: ReceivedRequest, keys: KeyLookup): boolean {
  let names = 0;
  for (const name in headers) {
    names += 1;
    if (textToSearch(name, headers[name], keys) !== undefined) return true;
  }
  return rawHeaders.length > 2 * names || hasLongWord(url, SHORTEST_KEY);
}

/** @returns the text of a header that may hold a key */
function textToSearch(
  name: string,
  value: string | string[] | undefined,
  keys: KeyLookup,
): string | undefined {
  if (name === KEY_HEADER || name === 'authorization') return undefined;
  const text = typeof value === 'string' ? value : (value?.join(' ') ?? '');
  if (!hasLongWord(text, SHORTEST_KEY)) return undefined;
  return name === 'mcp-session-id' && keys.isSession(text) ? undefined : text;
}

function search(
  { headers, rawHeaders, url = '' }: ReceivedRequest,
  keys: KeyLookup,
): readonly MisplacedKey[] {
  const found: MisplacedKey[] = [];
  let left = MOST_CANDIDATES;
  const holdsKey = (name: string, text: string): boolean => {
    const candidates = candidatesIn(text, SHORTEST_KEY).slice(0, left);
    left -= candidates.length;
    const key = kindOf(candidates, keys);
    // A header's name of this length may itself be a key, so it is not repeated.
    if (key) found.push({ key, where: name.length < SHORTEST_KEY ? `header ${name}` : 'a header' });
    return key !== undefined;
  };
  const names = Object.keys(headers);
  const holding = names.filter((name) => {
    const text = textToSearch(name, headers[name], keys);
    return text !== undefined && holdsKey(name, text);
  });
  if (rawHeaders.length > 2 * names.length) {
    for (const [name, text] of droppedHeaders(headers, rawHeaders)) holdsKey(name, text);
  }
  for (const name of holding) delete headers[name];
  const inUrl = keyInUrl(url, keys);
  return inUrl ? [...found, inUrl] : found;
}

/** Repeated headers of which Node keeps the first only. They are not forwarded, but a client sent them. */
function* droppedHeaders(
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
export function keyInUrl(url: string, keys: KeyLookup): MisplacedKey | undefined {
  if (!hasLongWord(url, SHORTEST_KEY)) return undefined;
  const at = url.indexOf('?');
  const [path, query] = at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
  for (const [where, text] of [
    ['query', query],
    ['path', path],
  ] as const) {
    const key = kindOf(candidatesIn(text, SHORTEST_KEY), keys);
    if (key !== undefined) return { key, where };
  }
  return undefined;
}

/**
 * @param name of a tool or of a method, which a client may make up
 * @returns the name, or what stands for it in records and telemetry when it is or contains a key
 */
export function withoutKey(name: string, keys: KeyLookup): string {
  const behindServer = name.slice(name.indexOf('-') + 1);
  return keyInUrl(name, keys) || keyInUrl(behindServer, keys) ? '(a key)' : name;
}

/** @returns whether a part of a text is a key */
export function holdsKey(text: string, keys: KeyLookup): boolean {
  return hasLongWord(text, SHORTEST_KEY) && kindOf(candidatesIn(text, SHORTEST_KEY), keys) !== undefined;
}

function kindOf(values: readonly string[], keys: KeyLookup): MisplacedKey['key'] | undefined {
  const ids = values.map(keyId);
  if (ids.some((id) => keys.isMaster(id))) return 'master_key';
  return ids.some((id) => keys.find(id) !== undefined) ? 'virtual_key' : undefined;
}

interface ReportedKey {
  readonly rule: RejectionRule;
  readonly source: string;
  readonly path: string;
  readonly misplaced: MisplacedKey;
}

/** What reports a misplaced key that no handler sees. */
interface MisplacedKeyServices {
  readonly keys: KeyLookup;
  readonly rejections: {
    reject(rejection: ReportedKey, correlation: string, status: number): Promise<unknown>;
  };
}

/**
 * Reports a key in the URL of a path that does not exist (G9): no handler sees such a request, but proxies log it.
 */
export function watchUnknownPaths(http: HttpSurface, { rejections, keys }: MisplacedKeyServices): void {
  http.addHook('onResponse', (request, reply, done) => {
    done();
    if (reply.raw.statusCode !== 404) return;
    const { id, ip: source, raw, routeOptions } = request;
    const misplaced = keyInUrl(raw.url ?? '', keys);
    if (!misplaced) return;
    const refusal = { rule: 'key_in_query', source, path: routeOptions.url ?? '', misplaced } as const;
    rejections.reject(refusal, id, 404).catch(() => undefined); // the answer is out already
  });
}

/** Candidates that are searched in one request. Honest requests have fewer. */
const MOST_CANDIDATES = 128;

const BETWEEN_WORDS = /[\s,;"]+/;
const BETWEEN_PIECES = /[=&?/:|'()<>[\]{}]+/;
/** The `+` of a form, signs of user and fragment in a URL, and encoded characters that no key has, such as a line end. */
const WITHIN_PIECES = /(?:[+@#\\]|%(?:[01][\da-f]|7f|[89a-f][\da-f]))+/i;
const IN_PIECES = /[=&?/:|'()<>[\]{}%+@#\\]/;
const BASIC = /(?<![\w-])basic[\s+]+([\w+/-]+)/gi;

/** Whether a text has a word of at least this length. It looks from the end of each possible word, and so skips most of the text. */
function hasLongWord(text: string, shortest: number): boolean {
  for (let start = 0; start + shortest <= text.length; ) {
    let at = start + shortest - 1;
    while (at >= start && !endsWord(text.charCodeAt(at))) at -= 1;
    if (at < start) return true;
    start = at + 1;
  }
  return false;
}

/** A key has no space or control character; any other separator may be part of one. */
const endsWord = (code: number): boolean => code <= 0x20;

/**
 * The parts of a text that may be a key: the whole text, its words, the parts of words between separators, the login in
 * `Basic`, and the percent-decoded form of each.
 *
 * @param shortest characters of a key
 * @returns at most 128
 */
function candidatesIn(text: string, shortest: number): readonly string[] {
  const found = new Set<string>();
  addCandidates(found, text, shortest, MOST_DECODED);
  return [...found];
}

function addCandidates(found: Set<string>, text: string, shortest: number, decodings: number): void {
  for (const part of partsOf(text)) {
    if (found.size >= MOST_CANDIDATES) return;
    if (part.length < shortest || found.has(part)) continue;
    found.add(part);
    const plain = decodings > 0 ? percentDecoded(part) : part;
    if (plain !== part) addCandidates(found, plain, shortest, decodings - 1);
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
      yield pair.slice(pair.indexOf('=') + 1); // a key may end with a separator, as base64 does with =
    }
  }
  for (const [, basic = ''] of text.matchAll(BASIC)) {
    const login = Buffer.from(basic, 'base64').toString('latin1').trim();
    yield* login.split(':');
    yield login.slice(login.indexOf(':') + 1); // a key may contain a colon
  }
}
