import { BodyTooLarge, readBody } from '../../../core/host/http/bounded-body.ts';
import { HttpCallError, type HttpClient, type HttpStream } from '../../../core/host/http/client.ts';
import { isObject, nestsDeeper } from '../../../core/kernel/json.ts';
import { challengesIn } from '../mcp/challenge.ts';

/** What an upstream answers when asked for its protected-resource document (RFC 9728). */
export type DocumentAnswer =
  | { readonly kind: 'document'; readonly document: Readonly<Record<string, unknown>> }
  /** It answers, and has none. */
  | { readonly kind: 'none'; readonly reason: string }
  /** It does not answer, or has a fault: whether it has a document is unknown. */
  | { readonly kind: 'unreachable'; readonly reason: string };

/** Longest document, bytes. */
const DOCUMENT_LIMIT = 64 * 1024;
/** Levels of the deepest document. A deeper one can't be written again without exhausting the stack. */
const DEEPEST = 64;
/** Deadline of the whole search, milliseconds. */
const DEADLINE_MS = 5_000;
/** Statuses of a ping that say that another answer may come later. */
const TEMPORARY: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const METADATA = 'resource_metadata';
const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** Changes nothing and begins no session. An upstream that requires a login answers with its challenge. */
const PING = { jsonrpc: '2.0', id: 1, method: 'ping' };

/**
 * Reads the document of an upstream, without any credential, at the places of RFC 9728: the well-known path before the
 * path of the resource, then at the root, then at the address in the upstream's own challenge, on the same host only.
 * Redirects are not followed, because they could lead from TLS to plain HTTP.
 *
 * @param upstream URL of its MCP endpoint; its query is not sent, because it may hold a secret
 */
export async function readDocument(http: HttpClient, upstream: URL): Promise<DocumentAnswer> {
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const path = upstream.pathname.replace(/\/+$/, '');
  const first = await readAt(http, `${upstream.origin}${WELL_KNOWN}${path}`, signal);
  if (first.kind !== 'none') return first;
  const root = path === '' ? first : await readAt(http, `${upstream.origin}${WELL_KNOWN}`, signal);
  if (root.kind === 'document') return root;
  const named = await addressInChallenge(http, upstream, signal);
  if (typeof named === 'object') return named;
  if (named === undefined) return root.kind === 'none' ? first : root;
  const address = URL.parse(named);
  // The protocol is compared as well: the origin of blob:https://host/ is https://host.
  if (address?.origin !== upstream.origin || address.protocol !== upstream.protocol) {
    return none('names one that is not on its own host');
  }
  return await readAt(http, `${address.origin}${address.pathname}${address.search}`, signal);
}

/** @returns the address that a challenge of the upstream names; undefined when none does */
async function addressInChallenge(
  http: HttpClient,
  { origin, pathname }: URL,
  signal: AbortSignal,
): Promise<string | undefined | DocumentAnswer> {
  const headers = { accept: 'application/json, text/event-stream' };
  const call = { method: 'POST', url: `${origin}${pathname}`, headers, json: PING, signal } as const;
  try {
    // The body is not read: it may be a stream that never ends.
    return await http.stream(call, async ({ status, headers: answered }) => {
      if (TEMPORARY.has(status)) return unreachable(`answers with status ${status}`);
      if (status !== 401) return undefined;
      const challenges = challengesIn(answered['www-authenticate']);
      return challenges
        .map(({ parameters }) => parameters.get(METADATA))
        .find((address) => address !== undefined);
    });
  } catch (error) {
    return failure(error, signal);
  }
}

async function readAt(http: HttpClient, url: string, signal: AbortSignal): Promise<DocumentAnswer> {
  try {
    return await http.stream({ url, headers: { accept: 'application/json' }, signal }, documentOf);
  } catch (error) {
    return failure(error, signal);
  }
}

async function documentOf({ status, body }: HttpStream): Promise<DocumentAnswer> {
  if (status >= 500 || status === 429) return unreachable(`answers with status ${status}`);
  if (status >= 300 && status < 400) return none('answers with a redirect');
  if (status !== 200) return none(`answers with status ${status}`);
  try {
    return parsed((await readBody(body, DOCUMENT_LIMIT)).bytes.toString('utf8'));
  } catch (error) {
    if (error instanceof BodyTooLarge) return none('answers with more than 64 KiB');
    throw error;
  }
}

function parsed(text: string): DocumentAnswer {
  if (nestsDeeper(text, DEEPEST))
    return none(`answers with JSON that is nested deeper than ${DEEPEST} levels`);
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return none('answers with something that is not JSON');
  }
  if (!isObject(document)) return none('answers with JSON that is no object');
  if (!hasWebServers(document)) return none('names an authorization server that is no http(s) URL');
  return { kind: 'document', document };
}

/** A client opens what is named here in a browser: `javascript:` or `file:` must not get there. */
function hasWebServers({ authorization_servers: servers = [] }: Record<string, unknown>): boolean {
  return Array.isArray(servers) && servers.every(isWebUrl);
}

function isWebUrl(value: unknown): boolean {
  const protocol = typeof value === 'string' ? URL.parse(value)?.protocol : undefined;
  return protocol === 'https:' || protocol === 'http:';
}

const none = (reason: string): DocumentAnswer => ({ kind: 'none', reason });
const unreachable = (reason: string): DocumentAnswer => ({ kind: 'unreachable', reason });

function failure(error: unknown, signal: AbortSignal): DocumentAnswer {
  const isLate = signal.aborted || (error instanceof HttpCallError && error.failure === 'timeout');
  return unreachable(isLate ? 'does not answer in time' : 'cannot be reached');
}
