import { HttpCallError, type HttpClient } from '../../../core/host/http/client.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { version } from '../../../core/kernel/version.ts';
import type { Probed } from '../../../machines/gateway/route-health.ts';
import { type DocumentCache, servedDocument } from '../discovery/document-cache.ts';
import type { DocumentAnswer } from '../discovery/read-document.ts';
import { REVISION_META } from '../mcp/message.ts';
import { PROBE_NAME, type ProbeAnswer, sendProbe } from '../mcp/probe-client.ts';
import { STATELESS_SINCE } from '../mcp/protocol.ts';
import type { ToolListing, ToolPins } from '../pins/tool-pins.ts';
import type { Route } from '../routes/route.ts';

/** The result of a probe, without its time. */
export type ProbeResult = Pick<Probed, 'found' | 'reason' | 'tools'>;

/** Deadline of a whole probe, milliseconds. */
const DEADLINE_MS = 10_000;
const REVISION = '2025-06-18';
/** Of a list of tools; a longer one is not compared with what is pinned. */
const MOST_PAGES = 50;
const clientInfo = { name: PROBE_NAME, version };

/**
 * Probes the upstream of a route (G17). It connects with the gateway's own credential and lists tools: an answer to
 * `initialize` alone does not count as healthy. The gateway has no credential for a relay route, so there it reads the
 * protected-resource document instead.
 */
export async function probe(
  route: Route,
  http: HttpClient,
  documents: Pick<DocumentCache, 'refresh'>,
  stop: AbortSignal,
  pins?: Pick<ToolPins, 'seen'>,
): Promise<ProbeResult> {
  const { url } = route;
  if (!url) return { found: 'failed', reason: 'is not configured' };
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  try {
    if (route.entry.disposition === 'relay') {
      return documentResult(servedDocument(await documents.refresh(url), route.entry));
    }
    if (route.entry.disposition === 'token_exchange') {
      return await probeWithoutToken(url, http, AbortSignal.any([stop, deadline]));
    }
    const signal = AbortSignal.any([stop, deadline]);
    const result = await new McpProbe(route, url, http, signal, pins).run();
    const unreached = result.found === 'ok' ? await route.reach?.(signal) : undefined;
    return unreached === undefined ? result : failed(`can not be reached: ${unreached}`);
  } catch (error) {
    if (deadline.aborted) return { found: 'failed', reason: 'does not answer in time' };
    if (error instanceof HttpCallError) {
      const isLate = error.failure === 'timeout';
      return { found: 'failed', reason: isLate ? 'does not answer in time' : 'cannot be reached' };
    }
    return { found: 'failed', reason: isCoded(error) ? 'its token can not be read' : 'cannot be reached' };
  }
}

/**
 * The gateway has no token of its own for a route of token exchange: that its upstream answers, be it that it wants a token,
 * is all that it can find out.
 */
async function probeWithoutToken(url: URL, http: HttpClient, signal: AbortSignal): Promise<ProbeResult> {
  const params = { protocolVersion: REVISION, capabilities: {}, clientInfo };
  const { status, type } = await sendProbe(http, {
    url,
    method: 'initialize',
    params,
    id: 1,
    headers: {},
    signal,
  });
  const answers = status === 401 || status === 403 || (status < 300 && type !== undefined);
  return answers ? { found: 'ok' } : failed(`answers with status ${status}`);
}

function documentResult(answer: DocumentAnswer): ProbeResult {
  switch (answer.kind) {
    case 'document':
      return { found: 'ok' };
    case 'none':
      return { found: 'undocumented', reason: `serves no protected-resource document: ${answer.reason}` };
    case 'unreachable':
      return { found: 'failed', reason: answer.reason };
  }
}

/** The answer to a request, or why there is none. */
type Outcome =
  | { readonly message: Readonly<Record<string, unknown>>; readonly answer: ProbeAnswer }
  | ProbeResult;

/** One session with an upstream: initialize, list tools, end. */
class McpProbe {
  readonly #route: Route;
  readonly #url: URL;
  readonly #http: HttpClient;
  readonly #signal: AbortSignal;
  readonly #pins: Pick<ToolPins, 'seen'> | undefined;

  constructor(
    route: Route,
    url: URL,
    http: HttpClient,
    signal: AbortSignal,
    pins: Pick<ToolPins, 'seen'> | undefined,
  ) {
    this.#pins = pins;
    this.#route = route;
    this.#url = url;
    this.#http = http;
    this.#signal = signal;
  }

  async run(): Promise<ProbeResult> {
    const params = { protocolVersion: REVISION, capabilities: {}, clientInfo };
    const initialized = await this.#request('initialize', params, {});
    if ('found' in initialized) return initialized;
    const { result } = initialized.message;
    // A server that knows the stateless revision only answers `initialize` with an error.
    if (!isObject(result)) return this.#toolsOf((cursor) => this.#listStateless(cursor));
    const session = initialized.answer.header('mcp-session-id');
    const headers = {
      'mcp-protocol-version': String(result.protocolVersion),
      ...(session !== undefined && { 'mcp-session-id': session }),
    };
    await this.#send('notifications/initialized', undefined, headers, undefined);
    const listed = await this.#toolsOf((cursor) => this.#request('tools/list', cursor, headers));
    if (session !== undefined) await this.#endSession(headers);
    return listed;
  }

  #listStateless(cursor: object): Promise<Outcome> {
    const meta = { [REVISION_META]: STATELESS_SINCE, 'io.modelcontextprotocol/clientCapabilities': {} };
    const headers = { 'mcp-protocol-version': STATELESS_SINCE, 'mcp-method': 'tools/list' };
    return this.#request('tools/list', { ...cursor, _meta: meta }, headers);
  }

  /** All pages of the list, which the pins of the route's tools are compared with. */
  async #toolsOf(list: (cursor: object) => Promise<Outcome>): Promise<ProbeResult> {
    const tools: ToolListing[] = [];
    let cursor: object = {};
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const outcome = await list(cursor);
      if ('found' in outcome) return outcome;
      const { result } = outcome.message;
      if (!isObject(result) || !Array.isArray(result.tools))
        return { found: 'failed', reason: 'answers tools/list with an error' };
      tools.push(...result.tools.filter(isObject));
      const { nextCursor } = result;
      if (typeof nextCursor !== 'string') return this.#found(tools, true);
      cursor = { cursor: nextCursor };
    }
    return this.#found(tools, false);
  }

  /** @param isWhole there is no further page */
  #found(tools: readonly ToolListing[], isWhole: boolean): ProbeResult {
    const { name, entry } = this.#route;
    if (isWhole && tools.length > 0) this.#pins?.seen(name, entry.pin, tools);
    const offered = tools.filter((tool) => this.#route.tools.offers(String(tool.name))).length;
    if (offered === 0) return { found: 'empty', reason: 'answers, and lists no tool', tools: 0 };
    return { found: 'ok', tools: offered };
  }

  async #request(
    method: string,
    params: object,
    headers: Readonly<Record<string, string>>,
  ): Promise<Outcome> {
    const answer = await this.#send(method, params, headers, 1);
    const { status, type, message } = answer;
    if (status === 401 || status === 403) {
      return { found: 'refused', reason: `refuses the credential (${status})` };
    }
    if (status >= 300 && type !== 'json') return failed(`answers with status ${status}`);
    if (type === undefined) return failed('answers with something that is neither JSON nor an event stream');
    if (message && ('result' in message || 'error' in message)) return { message, answer };
    return failed(status < 300 ? 'breaks its answer off' : `answers with status ${status}`);
  }

  #send(
    method: string,
    params: object | undefined,
    headers: Readonly<Record<string, string>>,
    id: number | undefined,
  ): Promise<ProbeAnswer> {
    return sendProbe(this.#http, {
      url: this.#url,
      method,
      params,
      id,
      headers: { ...headers, ...this.#route.credential(undefined) },
      signal: this.#signal,
    });
  }

  /** Whether the upstream accepts the DELETE does not matter. */
  async #endSession(headers: Readonly<Record<string, string>>): Promise<void> {
    await this.#http.stream(
      {
        method: 'DELETE',
        url: this.#url.href,
        headers: { ...headers, ...this.#route.credential(undefined) },
        signal: this.#signal,
      },
      async () => undefined,
    );
  }
}

const failed = (reason: string): ProbeResult => ({ found: 'failed', reason });
