import type { AnswerParams } from '../../../machines/gateway/call-shapes.ts';
import { type Answer, type RequestId, result, rpcError, SERVER_ERROR } from './json-rpc.ts';

// What a client reads whose call the gateway refuses or ends, and by which words it knows why.

/** The texts that clients look for, and what to do about each. */
const DENIED = 'User not allowed to call this tool.';
const detail = (text: string): { readonly detail: string } => ({ detail: `Authentication Error, ${text}` });
/** What is wrong with a key is the same wherever it is presented. */
export const WRONG_KEY: Partial<Readonly<Record<AnswerParams['rule'], string>>> = {
  malformed_key: 'Malformed API Key passed in. Ensure Key has `Bearer ` prefix.',
  revoked: 'Invalid API Key: it was revoked. Ask for another one.',
  expired: 'Invalid API Key: it has expired. Ask for another one.',
  rotated_out: 'Invalid API Key: it was rotated. Use the new value.',
  blocked: 'Invalid API Key: it is blocked for now. Ask its owner.',
};
const REFUSED_KEY: Partial<Readonly<Record<AnswerParams['rule'], string>>> = {
  ...WRONG_KEY,
  no_key: 'No api key passed in. Send the header x-gateway-api-key: Bearer <virtual key>.',
  unknown_key: 'Invalid API Key: it is not known here. Ask for one, or correct the header x-gateway-api-key.',
  key_only_in_authorization:
    'No api key passed in. A virtual key in Authorization does not admit: send it as x-gateway-api-key: Bearer <virtual key>, and rotate it.',
  master_key_presented:
    'The master key is for admin endpoints only. Send a virtual key, and rotate the master key.',
  master_key_misplaced:
    'The master key is for admin endpoints only. Take it out of the request, and rotate it.',
  key_misplaced:
    'A virtual key came in Authorization, which this route passes on. It was not forwarded: send it as x-gateway-api-key only, and rotate it.',
};

export const notFound: Answer = { status: 404, body: { detail: 'route not found' } };

/** What a refused call is answered. @returns undefined for a rule whose answer depends on the method */
export function unauthorized(rule: AnswerParams['rule']): Answer | undefined {
  const text = REFUSED_KEY[rule];
  return text === undefined ? undefined : { status: 401, body: detail(text) };
}

/**
 * What a refused call is answered by a status of its own, whatever it asked for.
 *
 * @param message none for a stream
 * @returns undefined for a rule whose answer depends on the method
 */
export function plainRefusal(
  { rule, retryAfterMs }: AnswerParams,
  message: { readonly method: string | undefined; readonly id?: RequestId | undefined } | undefined,
): Answer | undefined {
  const refused = UNCONNECTED[rule];
  if (refused !== undefined) return unconnected(`${refused} ${NOT_CALLED}`, retryAfterMs, message);
  if (!OPEN_LIMITS.has(rule)) return unauthorized(rule);
  if (message?.method === 'tools/call') return undefined; // in a result, which the model gets to see
  const headers = { 'retry-after': String(secondsOf(retryAfterMs)) };
  const text = LIMITS[rule] ?? '';
  if (!message) return { status: 429, body: { detail: text }, headers };
  return { ...rpcError(429, message.id ?? null, SERVER_ERROR, text), headers };
}

/** Why a host cannot say whether a key is good. */
const UNCONNECTED: Partial<Readonly<Record<AnswerParams['rule'], string>>> = {
  host_isolated:
    'This host is cut off from the others of its cluster, so that what they changed of keys may be unknown here.',
  host_behind:
    'This host has just started or come back to its cluster, and is still reading what the others changed of keys.',
};
const NOT_CALLED = 'Nothing was called: try again, or call another host.';

/** Whatever was asked for: no model need read of it, and a client or what stands before it may call another host. */
function unconnected(
  text: string,
  retryAfterMs: number | undefined,
  message: { readonly id?: RequestId | undefined } | undefined,
): Answer {
  const headers = { 'retry-after': String(secondsOf(retryAfterMs)) };
  if (!message) return { status: 503, body: { detail: text }, headers };
  return { ...rpcError(503, message.id ?? null, SERVER_ERROR, text, { retryAfterMs }), headers };
}

/** Whole seconds of a wait, at least one. */
const secondsOf = (ms = 0): number => Math.max(1, Math.ceil(ms / 1_000));

/** Limits of what is open at once. */
const OPEN_LIMITS: ReadonlySet<string> = new Set([
  'too_many_streams',
  'too_many_calls',
  'too_many_bytes_open',
]);

/** What is said of a limit beside when to come back. */
const LIMITS: Partial<Readonly<Record<AnswerParams['rule'], string>>> = {
  too_many_calls:
    'Too many calls of this key are open at once. Wait until one has ended, or ask its owner to raise max_parallel_requests.',
  too_many_streams:
    'Too many streams of this key are open at once. Close one, or ask its owner to raise max_streams.',
  too_many_bytes_open:
    'The open requests of this key are too large together. Wait until one has ended, or send them one after the other.',
};

/** To a call that was open when this host was cut off from the others for too long. */
export const endedByIsolation: Answer = {
  status: 503,
  body: {
    detail:
      'This host was cut off from the others of its cluster, so that what they changed of keys may be unknown here. The call was ended while it ran: see what became of it, then call another host.',
  },
};

/** To a call that was open when its key was revoked, changed or expired. */
export const keyEnded: Answer = {
  status: 401,
  body: detail('Invalid API Key: it was revoked, changed or has expired while this call ran.'),
};

/**
 * The challenge of an identity route (G8).
 *
 * @param metadata URL of the protected-resource document
 * @param scopes that the entry of the route has in its challenge
 */
export function challenge(metadata: string, scopes: readonly string[] = []): Answer {
  const scope = scopes.length > 0 ? `, scope="${scopes.join(' ')}"` : '';
  return {
    status: 401,
    body: detail('This route wants your own access token in Authorization.'),
    headers: { 'www-authenticate': `Bearer resource_metadata="${metadata}"${scope}` },
  };
}

/** What every result of the stateless revision says of itself. */
export const COMPLETE = { resultType: 'complete' } as const;
/** Where such a result names its server: a key of `_meta`. */
export const SERVER_INFO_META = 'io.modelcontextprotocol/serverInfo';

/** A tool's result that says no: clients show it to the model, which an HTTP error they do not (G5, G16). */
export function toolRefusal(
  id: RequestId | null,
  { rule, retryAfterMs }: AnswerParams,
  era: 'sessions' | 'stateless' = 'sessions',
): Answer {
  const seconds = secondsOf(retryAfterMs);
  const texts: Partial<Record<AnswerParams['rule'], string>> = {
    ...LIMITS,
    rate_limited: `Rate limit of this key exceeded. Try again in ${seconds} s.`,
    over_budget: 'Budget of this key exceeded. Ask its owner to raise max_budget.',
  };
  const headers = retryAfterMs === undefined ? undefined : { 'retry-after': String(seconds) };
  return toolError(id, texts[rule] ?? DENIED, era, headers);
}

/** A tool's result that is an error of the gateway's own. */
export function toolError(
  id: RequestId | null,
  text: string,
  era: 'sessions' | 'stateless',
  headers?: Readonly<Record<string, string>>,
): Answer {
  const content = [{ type: 'text', text: `Error: ${text}` }];
  return result(id, { content, isError: true, ...(era === 'stateless' && COMPLETE) }, headers);
}
