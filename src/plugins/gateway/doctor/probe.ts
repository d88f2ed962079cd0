import { counted } from '../../../core/host/amounts.ts';
import { HttpCallError, type HttpClient } from '../../../core/host/http/client.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { version } from '../../../core/kernel/version.ts';
import { claimsOf } from '../issued/issued-tokens.ts';
import { KEY_HEADER } from '../keys/virtual-keys.ts';
import { type ProbeAnswer, sendProbe } from '../mcp/probe-client.ts';
import type { RouteEntry } from '../routes/entry.ts';
import { type Diagnosis, diagnose, diagnosis } from './symptoms.ts';

type RelayEntry = Extract<RouteEntry, { disposition: 'relay' }>;

export interface ProbeOptions {
  readonly gatewayUrl: string;
  /** The virtual key. */
  readonly key: string;
  /** An identity token, for relay routes. */
  readonly token?: string | undefined;
  readonly http: HttpClient;
  readonly signal: AbortSignal;
}

/** How a route appears to a client. */
export interface RouteFinding {
  readonly route: string;
  readonly state: 'healthy' | 'login_needed' | 'not_configured' | 'sick';
  readonly found: string;
  readonly diagnosis?: Diagnosis;
}

/**
 * Calls a route as a client would (G22): it connects and lists tools, and for an identity route without a token it reads
 * what a login needs. A 200 from `initialize` alone does not count as healthy.
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
  const isChallenged = opened.status === 401 && opened.header('www-authenticate') !== undefined;
  if (isChallenged && options.token === undefined) return probeLogin(entry, options);
  const missing = opened.status === 503 ? missingSetting(opened.text) : undefined;
  if (missing !== undefined) return { route, state: 'not_configured', found: missing };
  if (opened.status !== 200) return sick(...refusalOf(entry, opened, options));
  const listed = await post(entry, options, 'tools/list', {}, opened.header('mcp-session-id'));
  if (typeof listed === 'string') return sick(listed, diagnosis('gateway_down'));
  const { error, result } = listed.message ?? {};
  if (isObject(error)) {
    return sick(`tools/list: ${String(error.message).slice(0, 200)}`, diagnose(String(error.message)));
  }
  const tools = isObject(result) && Array.isArray(result.tools) ? result.tools.length : undefined;
  if (listed.status !== 200 || tools === undefined) return sick(`tools/list answers ${listed.status}`);
  if (tools === 0) return sick('connected, and the tool list is empty', diagnosis('not_entitled'));
  // Many upstreams check the token only when a tool is called, and a probe calls none.
  const problem = entry.disposition === 'relay' ? claimProblem(entry, options) : undefined;
  if (problem !== undefined)
    return sick(`lists ${counted(tools, 'tool')}, but ${problem}`, diagnosis('wrong_audience'));
  return { route, state: 'healthy', found: counted(tools, 'tool') };
}

/** @returns the setting that a route without upstream asks for */
const missingSetting = (text: string): string | undefined => /is not configured: ([^"]*)\."/.exec(text)?.[1];

/** @returns the answer, or a sentence that says why there is none */
async function post(
  { name }: RouteEntry,
  { gatewayUrl, key, token, http, signal }: ProbeOptions,
  method: string,
  params: object,
  session?: string,
): Promise<ProbeAnswer | string> {
  const url = new URL(`${gatewayUrl}/${name}/mcp`);
  const headers = {
    [KEY_HEADER]: `Bearer ${key}`,
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(session !== undefined && { 'mcp-session-id': session }),
  };
  try {
    return await sendProbe(http, { url, method, params, id: 1, headers, signal });
  } catch (error) {
    if (!(error instanceof HttpCallError)) throw error;
    return `no answer from ${url.origin}: ${error.reason}`;
  }
}

function refusalOf(
  entry: RouteEntry,
  answer: ProbeAnswer,
  { token, gatewayUrl }: ProbeOptions,
): [string, Diagnosis | undefined] {
  const { status, text } = answer;
  const symptom = `${answer.header('www-authenticate') ?? ''} ${text}`;
  const found = `initialize answers ${status}`;
  if (entry.disposition === 'relay' && token !== undefined && /invalid_token/.test(symptom)) {
    const problem = tokenProblem(token, audienceOf(entry, gatewayUrl), Date.now());
    return [problem === undefined ? found : `${found}: ${problem}`, diagnosis('wrong_audience')];
  }
  return [found, diagnose(symptom) ?? diagnose(String(status))];
}

const audienceOf = ({ audience }: RelayEntry, gatewayUrl: string): string | undefined =>
  audience?.replace('{gateway_url}', gatewayUrl);

/** @returns why no call with this token can succeed; undefined for a token that only its issuer can read */
function claimProblem(entry: RelayEntry, { token, gatewayUrl }: ProbeOptions): string | undefined {
  if (token === undefined || !claimsOf(token)) return undefined;
  return tokenProblem(token, audienceOf(entry, gatewayUrl), Date.now());
}

/** Reads what an identity route offers to a client that has not logged in yet. */
async function probeLogin(entry: RouteEntry, options: ProbeOptions): Promise<RouteFinding> {
  const { name: route } = entry;
  const { gatewayUrl, http, signal } = options;
  const url = `${gatewayUrl}/.well-known/oauth-protected-resource/${route}/mcp`;
  try {
    const answer = await http.call({ url, signal });
    const { status } = answer;
    const missing = status === 503 ? missingSetting(answer.text()) : undefined;
    if (missing !== undefined) return { route, state: 'not_configured', found: missing };
    if (status !== 200) {
      const what = diagnosis(status === 404 ? 'wrong_document_url' : 'no_document');
      return { route, state: 'sick', found: `discovery answers ${status}`, diagnosis: what };
    }
    const body = answer.json();
    const { resource, authorization_servers: servers } = isObject(body) ? body : {};
    if (resource !== `${gatewayUrl}/${route}/mcp`) {
      const found =
        'the document names another resource than the URL that clients use, so strict clients refuse it';
      const remedy = 'Set HOLDFAST_PUBLIC_URL to the base that clients use.';
      return { route, state: 'sick', found, diagnosis: { code: 'wrong_resource', cause: found, remedy } };
    }
    const [server] = Array.isArray(servers) ? servers : [];
    return { route, state: 'login_needed', found: `clients log in at ${String(server)}` };
  } catch {
    signal.throwIfAborted();
    return { route, state: 'sick', found: 'discovery does not answer', diagnosis: diagnosis('no_document') };
  }
}

/**
 * Checks audience and expiry of an identity token, which can be read without its key. Nothing else of it is shown.
 *
 * @param audience that the upstream expects
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
    return `the token is for ${given.join(', ') || 'nobody'}, and the upstream expects ${audience}`;
  }
  return undefined;
}
