import type { IncomingHttpHeaders } from 'node:http';
import { MOST_DECODED, percentDecoded } from '../../../core/host/logging/mask-text.ts';
import type { CallRequest, MisplacedKey, RejectionRule } from '../../../machines/gateway/key.ts';
import { SHORTEST_KEY } from './request.ts';
import { bearerIn, type KeyLookup, keyId } from './virtual-keys.ts';

/** A caller whose virtual key is known. The presented value itself is not kept. */
export interface AuthenticatedKey {
  readonly id: string;
  /** Id of the presented value. */
  readonly presented: string;
  readonly authorization: CallRequest['authorization'];
  /** A key in another place of the request. */
  readonly misplaced?: MisplacedKey;
}

/** A caller without a known key, with the rule that rejects it. */
export interface RejectedCaller {
  readonly rule: RejectionRule;
  /** A key in a place where none belongs. */
  readonly misplaced?: MisplacedKey;
}

export type Caller = AuthenticatedKey | RejectedCaller;

/**
 * Authenticates a caller and searches the whole request for misplaced keys. Headers that hold one are deleted from the
 * request.
 *
 * @param authenticated the caller, when `authenticate` was called for this request before
 */
export function inspectCaller(
  request: ReceivedRequest,
  keys: KeyLookup,
  authenticated?: AuthenticatedKey,
): Caller {
  const caller = authenticated ?? authenticate(request.headers, keys);
  const misplaced = removeMisplacedKey(request, keys);
  if (!misplaced) return caller;
  if (!('rule' in caller)) return { ...caller, misplaced };
  const isMoreSevere = !caller.misplaced || misplaced.key === 'master_key';
  return isMoreSevere ? { ...caller, misplaced } : caller;
}

/**
 * Authenticates a caller by the key header alone (G3, G9, G25). `Authorization` is only searched for a key that
 * should not be there.
 */
export function authenticate(headers: IncomingHttpHeaders, keys: KeyLookup): Caller {
  const header = headers[KEY_HEADER];
  const authorization = authorizationOf(headers.authorization, keys);
  if (header === undefined) {
    if (authorization === 'master_key') return { rule: 'master_key_presented' };
    return { rule: authorization === 'virtual_key' ? 'key_only_in_authorization' : 'no_key' };
  }
  const text = typeof header === 'string' ? header : header.join(' ');
  const rejected = (rule: RejectionRule) =>
    rejectedCaller(rule, keyIn(text, keys) === 'master_key' ? 'master_key' : authorization);
  const value = bearerIn(text);
  if (value === undefined) return rejected('malformed_key');
  const presented = keyId(value);
  if (keys.isMaster(presented)) return { rule: 'master_key_presented' };
  const id = keys.find(presented);
  return id === undefined ? rejected('unknown_key') : { id, presented, authorization };
}

function rejectedCaller(rule: RejectionRule, authorization: CallRequest['authorization']): RejectedCaller {
  if (authorization === undefined || authorization === 'bearer') return { rule };
  return { rule, misplaced: { key: authorization, where: IN_AUTHORIZATION } };
}

function authorizationOf(header: string | undefined, keys: KeyLookup): CallRequest['authorization'] {
  if (header === undefined || header.trim() === '') return undefined;
  return keyIn(header, keys) ?? 'bearer';
}

// The search for keys in places where they leak (G9, G25): in headers other than the key header, in the path and in
// the query. Such a key is reported by an alert, and its header does not reach the upstream.

/** The header that carries a virtual key, on every route. */
export const KEY_HEADER = 'x-gateway-api-key';

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

function kindOf(values: readonly string[], keys: KeyLookup): MisplacedKey['key'] | undefined {
  const ids = values.map(keyId);
  if (ids.some((id) => keys.isMaster(id))) return 'master_key';
  return ids.some((id) => keys.find(id) !== undefined) ? 'virtual_key' : undefined;
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
