import { HttpCallError, HttpClient, type HttpDispatcher } from '../../../core/host/http/client.ts';
import { isObject, nestsDeeper } from '../../../core/kernel/json.ts';
import { challengesIn } from '../mcp/challenge.ts';

/** What an upstream says of its protected-resource document (RFC 9728). */
export type DocumentAnswer =
  | { readonly kind: 'document'; readonly document: Readonly<Record<string, unknown>> }
  /** It answers, and has none. */
  | { readonly kind: 'none'; readonly reason: string }
  /** It does not answer, or is ill: nobody knows whether it has one. */
  | { readonly kind: 'unreachable'; readonly reason: string };

/** No document of this kind is larger, bytes. */
const LARGEST = 64 * 1024;
/** Levels of one: what is nested deeper can be read, but not be written again. */
const DEEPEST = 64;
const DEADLINE_MS = 5_000;
const LATER: ReadonlySet<number> = new Set([429, 502, 503, 504]);
const METADATA = 'resource_metadata';
const WELL_KNOWN = '/.well-known/oauth-protected-resource';

/** Changes nothing and begins no session; who wants a login answers with the challenge. */
const PING = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' });

/**
 * Reads the document of an upstream, without any credential, where RFC 9728 puts it: the well-known path before the
 * path of the resource, then at the root, then where the upstream's own challenge says, on its own host. Redirects are
 * not followed: the first could lead from TLS to plain HTTP.
 *
 * @param upstream URL of its MCP endpoint; its query is not sent, for it may hold a secret
 */
export async function readDocument(agent: HttpDispatcher, upstream: URL): Promise<DocumentAnswer> {
  // One deadline for all its calls.
  const signal = AbortSignal.timeout(DEADLINE_MS);
  const http = new HttpClient({ dispatcher: agent, timeoutMs: DEADLINE_MS, answerLimit: LARGEST });
  const readAt = (path: string) => readOne(http, `${upstream.origin}${path}`, signal);
  const path = upstream.pathname.replace(/\/+$/, '');
  const first = await readAt(`${WELL_KNOWN}${path}`);
  if (first.kind !== 'none') return first;
  const root = path === '' ? first : await readAt(WELL_KNOWN);
  if (root.kind === 'document') return root;
  const named = await namedBy(http, upstream, signal);
  if (typeof named === 'object') return named;
  if (named === undefined) return root.kind === 'none' ? first : root;
  const address = URL.parse(named);
  // The origin of blob:https://host/ is https://host, and what would be asked for is no path.
  if (address?.origin !== upstream.origin || address.protocol !== upstream.protocol) {
    return none('names one that is not on its own host');
  }
  return readAt(address.pathname + address.search);
}

/** @returns the address of its document that a challenge of the upstream names; undefined when none does */
async function namedBy(
  http: HttpClient,
  { origin, pathname }: URL,
  signal: AbortSignal,
): Promise<string | undefined | DocumentAnswer> {
  const call = {
    url: `${origin}${pathname}`,
    method: 'POST',
    headers: { accept: 'application/json, text/event-stream', 'content-type': 'application/json' },
    body: PING,
    signal,
  } as const;
  try {
    // Only the head is read: an answer that is a stream might never end.
    const { status, headers } = await http.stream(call, async (answer) => answer);
    // A server may well fail at a ping without a session; these say that another answer is to be had later.
    if (LATER.has(status)) return unreachable(`answers with status ${status}`);
    if (status !== 401) return undefined;
    const named = challengesIn(headers['www-authenticate']).map(({ parameters }) => parameters.get(METADATA));
    return named.find((address) => address !== undefined);
  } catch (error) {
    return failure(error);
  }
}

async function readOne(http: HttpClient, url: string, signal: AbortSignal): Promise<DocumentAnswer> {
  try {
    const answer = await http.call({ url, headers: { accept: 'application/json' }, signal });
    const { status } = answer;
    if (status === 200) return documentIn(answer.text());
    if (status >= 500 || status === 429) return unreachable(`answers with status ${status}`);
    const isRedirect = status >= 300 && status < 400;
    return none(isRedirect ? 'answers with a redirect' : `answers with status ${status}`);
  } catch (error) {
    return failure(error);
  }
}

function failure(error: unknown): DocumentAnswer {
  if (!(error instanceof HttpCallError)) return unreachable('does not answer in time');
  if (error.failure === 'too_large') return none('answers with more than 64 KiB');
  return unreachable(error.failure === 'timeout' ? 'does not answer in time' : 'cannot be reached');
}

function documentIn(text: string): DocumentAnswer {
  if (nestsDeeper(text, DEEPEST))
    return none(`answers with JSON that is nested deeper than ${DEEPEST} levels`);
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return none('answers with something that is not JSON');
  }
  if (!isObject(document)) return none('answers with JSON that is no object');
  return { kind: 'document', document };
}

const none = (reason: string): DocumentAnswer => ({ kind: 'none', reason });
const unreachable = (reason: string): DocumentAnswer => ({ kind: 'unreachable', reason });
