import type { Dispatcher } from 'undici';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { version } from '../../../core/kernel/version.ts';
import type { Probed } from '../../../machines/gateway/route-health.ts';
import { type Heard, hear } from '../aggregate/read-answer.ts';
import type { DocumentCache } from '../discovery/document-cache.ts';
import { servedDocument } from '../discovery/document-cache.ts';
import type { DocumentAnswer } from '../discovery/read-document.ts';
import { REVISION_META } from '../mcp/message.ts';
import { STATELESS_SINCE } from '../mcp/protocol.ts';
import type { Route } from '../routes/route.ts';
import { stopWithin } from '../stop.ts';
import { ask } from '../upstream/client.ts';
import { headerOf } from '../upstream/request.ts';

/** What a look found, without its time. */
export type ProbeResult = Pick<Probed, 'found' | 'reason' | 'tools'>;

const DEADLINE_MS = 10_000;
/** The revision of the documents' own check. */
const REVISION = '2025-06-18';
const clientInfo = { name: 'holdfast-health', version };

/**
 * Looks at the upstream of a route (G17). With the gateway's own credential it connects and lists tools: that it
 * answers `initialize` is not enough. A relay route has no credential to look with, so its discovery document is read
 * instead.
 */
export async function probe(
  route: Route,
  agent: Dispatcher,
  documents: Pick<DocumentCache, 'refresh'>,
  stop: AbortSignal,
): Promise<ProbeResult> {
  const { url } = route;
  if (!url) return { found: 'failed', reason: 'is not configured' };
  const { signal, release } = stopWithin(DEADLINE_MS, stop);
  try {
    if (route.entry.disposition === 'relay') {
      return documentLook(servedDocument(await documents.refresh(url), route.entry));
    }
    return await new Probe(route, url, agent, signal).look();
  } catch (error) {
    if (isCoded(error)) return { found: 'failed', reason: 'its token can not be read' };
    return { found: 'failed', reason: signal.aborted ? 'does not answer in time' : 'cannot be reached' };
  } finally {
    release();
  }
}

function documentLook(answer: DocumentAnswer): ProbeResult {
  switch (answer.kind) {
    case 'document':
      return { found: 'ok' };
    case 'none':
      return { found: 'undocumented', reason: `serves no protected-resource document: ${answer.reason}` };
    case 'unreachable':
      return { found: 'failed', reason: answer.reason };
  }
}

class Probe {
  readonly #route: Route;
  readonly #url: URL;
  readonly #agent: Dispatcher;
  readonly #signal: AbortSignal;

  constructor(route: Route, url: URL, agent: Dispatcher, signal: AbortSignal) {
    this.#route = route;
    this.#url = url;
    this.#agent = agent;
    this.#signal = signal;
  }

  async look(): Promise<ProbeResult> {
    const params = { protocolVersion: REVISION, capabilities: {}, clientInfo };
    const begun = await this.#post('initialize', params, {}, 1);
    if ('reason' in begun) return sick(begun.reason);
    const { result } = begun.message;
    // A server of the stateless revision alone has no `initialize`.
    if (!isObject(result)) return this.#toolsOf(await this.#stateless());
    const session = headerOf(begun.headers, 'mcp-session-id');
    const headers = {
      'mcp-protocol-version': String(result.protocolVersion),
      ...(session !== undefined && { 'mcp-session-id': session }),
    };
    await this.#post('notifications/initialized', undefined, headers, undefined);
    const look = this.#toolsOf(await this.#post('tools/list', {}, headers, 2));
    if (session !== undefined) await this.#end(headers);
    return look;
  }

  #stateless(): Promise<Heard> {
    const meta = { [REVISION_META]: STATELESS_SINCE, 'io.modelcontextprotocol/clientCapabilities': {} };
    const headers = { 'mcp-protocol-version': STATELESS_SINCE, 'mcp-method': 'tools/list' };
    return this.#post('tools/list', { _meta: meta }, headers, 2);
  }

  #toolsOf(heard: Heard): ProbeResult {
    if ('reason' in heard) return sick(heard.reason);
    const { result } = heard.message;
    const tools = isObject(result) && Array.isArray(result.tools) ? result.tools : undefined;
    if (!tools) return { found: 'failed', reason: 'answers tools/list with an error' };
    const offered = tools.filter((tool) => isObject(tool) && this.#route.offers(String(tool.name))).length;
    if (offered === 0) return { found: 'empty', reason: 'answers, and lists no tool', tools: 0 };
    return { found: 'ok', tools: offered };
  }

  async #post(
    method: string,
    params: object | undefined,
    headers: Readonly<Record<string, string>>,
    id: number | undefined,
  ): Promise<Heard> {
    const body = JSON.stringify({ jsonrpc: '2.0', ...(id !== undefined && { id }), method, params });
    const all = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    };
    return hear(await this.#ask('POST', all, body), id);
  }

  /** Leaves no session behind; whether the upstream cares is its own business. */
  async #end(headers: Readonly<Record<string, string>>): Promise<void> {
    const { body } = await this.#ask('DELETE', headers);
    await body.dump();
  }

  #ask(method: 'POST' | 'DELETE', headers: Readonly<Record<string, string>>, body?: string) {
    return ask(this.#agent, {
      url: this.#url,
      method,
      headers: { ...headers, ...this.#route.credential(undefined) },
      ...(body !== undefined && { body }),
      signal: this.#signal,
      timeoutMs: DEADLINE_MS,
    });
  }
}

function sick(reason: string): ProbeResult {
  return { found: reason.startsWith('refuses') ? 'refused' : 'failed', reason };
}
