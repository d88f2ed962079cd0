import { BodyTooLarge } from '../../../core/host/http/bounded-body.ts';
import { HttpCallError, HttpClient, type HttpDispatcher } from '../../../core/host/http/client.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { version } from '../../../core/kernel/version.ts';
import { ADMISSION_HEADER } from '../keys/misplaced-key.ts';
import type { RouteEntry } from '../routes/entry.ts';
import { type Diagnosis, diagnose, diagnosis } from './symptoms.ts';

export interface ProbeOptions {
  readonly gatewayUrl: string;
  /** The virtual key. */
  readonly key: string;
  /** An identity token, for relay routes. */
  readonly token?: string | undefined;
  readonly dispatcher: HttpDispatcher;
  readonly signal: AbortSignal;
}

/** What a route looks like to a client. */
export interface RouteFinding {
  readonly route: string;
  readonly state: 'healthy' | 'login_needed' | 'not_configured' | 'sick';
  readonly found: string;
  readonly diagnosis?: Diagnosis;
}

const DEADLINE_MS = 15_000;
const LONGEST_ANSWER = 4 * 1024 * 1024;

/**
 * Calls a route as a client would (G22): it connects, lists tools, and for an identity route reads what a login needs.
 * A 200 from `initialize` alone is not called healthy.
 */
export async function probeRoute(entry: RouteEntry, options: ProbeOptions): Promise<RouteFinding> {
  const { name: route } = entry;
  const sick = (found: string, what?: Diagnosis): RouteFinding => ({
    route,
    state: 'sick',
    found,
    ...(what && { diagnosis: what }),
  });
  const opened = await post(entry, options, 'initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'holdfast-doctor', version },
  });
  if (typeof opened === 'string') return sick(opened, diagnosis('gateway_down'));
  if (opened.status === 401 && opened.challenge !== undefined && options.token === undefined) {
    return loginOf(entry, options);
  }
  const unset = opened.status === 503 ? unsetIn(opened.text) : undefined;
  if (unset !== undefined) return { route, state: 'not_configured', found: unset };
  if (opened.status !== 200) return sick(...refusalOf(entry, opened, options));
  const listed = await post(entry, options, 'tools/list', {}, opened.session);
  if (typeof listed === 'string') return sick(listed, diagnosis('gateway_down'));
  const error = isObject(listed.message) ? listed.message.error : undefined;
  if (isObject(error)) {
    return sick(`tools/list: ${String(error.message).slice(0, 200)}`, diagnose(String(error.message)));
  }
  const tools = toolsOf(listed.message);
  if (listed.status !== 200 || tools === undefined) return sick(`tools/list answers ${listed.status}`);
  if (tools === 0) return sick('connected, and the tool list is empty', diagnosis('not_entitled'));
  // Many an upstream looks at the token only when a tool is called, which nobody does to look.
  const problem = entry.disposition === 'relay' ? claimProblem(entry, options) : undefined;
  if (problem !== undefined) return sick(`lists ${tools} tools, but ${problem}`, diagnosis('wrong_audience'));
  return { route, state: 'healthy', found: `${tools} tools` };
}

/** What a route without upstream says is to be set. */
const unsetIn = (text: string): string | undefined => /is not configured: ([^"]*)\."/.exec(text)?.[1];

interface Answered {
  readonly status: number;
  readonly message: unknown;
  readonly text: string;
  readonly session: string | undefined;
  readonly challenge: string | undefined;
}

async function post(
  { name }: RouteEntry,
  { gatewayUrl, key, token, dispatcher, signal }: ProbeOptions,
  method: string,
  params: object,
  session?: string,
): Promise<Answered | string> {
  const url = new URL(`${gatewayUrl}/${name}/mcp`);
  const call = {
    url: url.href,
    method: 'POST',
    headers: {
      accept: 'application/json, text/event-stream',
      [ADMISSION_HEADER]: `Bearer ${key}`,
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(session !== undefined && { 'mcp-session-id': session }),
    },
    json: { jsonrpc: '2.0', id: 1, method, params },
    signal,
  } as const;
  try {
    return await client(dispatcher).stream(call, async ({ status, headers, body }) => {
      const text = await firstMessage(body);
      const header = (field: string) => {
        const value = headers[field];
        return typeof value === 'string' ? value : undefined;
      };
      return {
        status,
        text,
        message: messageOf(text),
        session: header('mcp-session-id'),
        challenge: header('www-authenticate'),
      };
    });
  } catch (error) {
    if (!(error instanceof HttpCallError)) throw error;
    return `no answer from ${url.origin} (${error.failure === 'timeout' ? 'late' : error.networkCode})`;
  }
}

const client = (dispatcher: HttpDispatcher) =>
  new HttpClient({ dispatcher, timeoutMs: DEADLINE_MS, answerLimit: LONGEST_ANSWER });

/** A whole answer, or the first message of an event stream, which may never end. */
async function firstMessage(body: AsyncIterable<Uint8Array>): Promise<string> {
  let text = '';
  for await (const chunk of body) {
    text += Buffer.from(chunk).toString('utf8');
    if (text.length > LONGEST_ANSWER) throw new BodyTooLarge(LONGEST_ANSWER);
    if (/^data: .*\n\n/m.test(text)) break;
  }
  return text;
}

function messageOf(text: string): unknown {
  const data = /^data: (.*)$/m.exec(text)?.[1];
  try {
    return JSON.parse(data ?? text);
  } catch {
    return undefined;
  }
}

function toolsOf(message: unknown): number | undefined {
  const result = isObject(message) ? message.result : undefined;
  return isObject(result) && Array.isArray(result.tools) ? result.tools.length : undefined;
}

function refusalOf(
  entry: RouteEntry,
  { status, text, challenge }: Answered,
  { token, gatewayUrl }: ProbeOptions,
): [string, Diagnosis | undefined] {
  const said = challenge === undefined ? text : `${challenge} ${text}`;
  const found = `initialize answers ${status}`;
  if (entry.disposition === 'relay' && token !== undefined && /invalid_token/.test(said)) {
    const problem = tokenProblem(token, audienceOf(entry, gatewayUrl), Date.now());
    return [problem === undefined ? found : `${found}: ${problem}`, diagnosis('wrong_audience')];
  }
  return [found, diagnose(said) ?? diagnose(String(status))];
}

const audienceOf = ({ audience }: Extract<RouteEntry, { disposition: 'relay' }>, gatewayUrl: string) =>
  audience?.replace('{gateway_url}', gatewayUrl);

/** @returns why no call with this token can succeed; undefined of one that only its issuer can read */
function claimProblem(
  entry: Extract<RouteEntry, { disposition: 'relay' }>,
  { token, gatewayUrl }: ProbeOptions,
): string | undefined {
  if (token === undefined || !isJwt(token)) return undefined;
  return tokenProblem(token, audienceOf(entry, gatewayUrl), Date.now());
}

/** What an identity route offers a client that has yet to log in. */
async function loginOf(entry: RouteEntry, options: ProbeOptions): Promise<RouteFinding> {
  const { name: route } = entry;
  const { gatewayUrl, dispatcher, signal } = options;
  const url = new URL(`${gatewayUrl}/.well-known/oauth-protected-resource/${route}/mcp`);
  try {
    const answer = await client(dispatcher).call({ url: url.href, signal });
    const text = answer.text();
    const unset = answer.status === 503 ? unsetIn(text) : undefined;
    if (unset !== undefined) return { route, state: 'not_configured', found: unset };
    if (answer.status !== 200) {
      const what = diagnosis(answer.status === 404 ? 'wrong_document_url' : 'no_document');
      return { route, state: 'sick', found: `discovery answers ${answer.status}`, diagnosis: what };
    }
    const document = JSON.parse(text) as { resource?: unknown; authorization_servers?: unknown };
    if (document.resource !== `${gatewayUrl}/${route}/mcp`) {
      const found =
        'the document names another resource than the URL that clients use, and strict ones refuse it';
      const remedy = 'Set HOLDFAST_PUBLIC_URL to the base that clients use.';
      return { route, state: 'sick', found, diagnosis: { code: 'wrong_resource', cause: found, remedy } };
    }
    const [server] = Array.isArray(document.authorization_servers) ? document.authorization_servers : [];
    return { route, state: 'login_needed', found: `clients log in at ${String(server)}` };
  } catch {
    signal.throwIfAborted();
    return { route, state: 'sick', found: 'discovery does not answer', diagnosis: diagnosis('no_document') };
  }
}

/**
 * What of an identity token can be seen without its key: whom it is for and until when. Nothing else of it is shown.
 *
 * @param audience that the upstream wants
 * @param now epoch milliseconds
 * @returns undefined when neither explains a refusal
 */
function tokenProblem(token: string, audience: string | undefined, now: number): string | undefined {
  const claims = claimsOf(token);
  if (!claims) return 'the token is no JWT';
  const { aud, exp } = claims;
  if (typeof exp === 'number' && exp * 1_000 <= now) return 'the token has expired';
  const given = (Array.isArray(aud) ? aud : [aud]).filter((item) => typeof item === 'string');
  if (audience !== undefined && !given.includes(audience)) {
    return `the token is for ${given.join(', ') || 'nobody'}, and the upstream wants ${audience}`;
  }
  return undefined;
}

/** Whether anything of a token can be read. */
const isJwt = (token: string): boolean => claimsOf(token) !== undefined;

function claimsOf(token: string): Record<string, unknown> | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    return isObject(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}
