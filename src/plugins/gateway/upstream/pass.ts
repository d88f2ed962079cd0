import type { IncomingHttpHeaders } from 'node:http';
import type { CallEnded } from '../../../machines/mcp-access.ts';
import { KEY_ENDED } from '../calls/open-calls.ts';
import type { RouteCallParts } from '../calls/route-call.ts';
import { keyEnded, rpcError } from '../mcp/answers.ts';
import { showTools } from '../mcp/tool-names.ts';
import type { UpstreamAnswer } from './client.ts';
import { downHeaders } from './headers.ts';
import { listener, type Told, toldBy } from './outcome.ts';
import { eventRewriter, type Rewrite, rewriteMessage } from './rewrite.ts';

const UPSTREAM_FAILED = -32_603;
/** Answers up to here are sent in one piece, which is cheaper than a stream. */
const WHOLE = 64 * 1024;
/** A tool list must be held whole to be renamed. */
const LARGEST_LIST = 8 * 1024 * 1024;

/** What is not passed on is read up to here, bytes and milliseconds. */
const DROPPED = 64 * 1024;
const DROPPED_MS = 2_000;

type Body = UpstreamAnswer['body'];

/**
 * Asks the upstream and passes its answer on, unbuffered where it is a stream (G23). Whatever the upstream does wrong is
 * answered in the protocol's words, without the upstream's own text where that could hold a credential.
 */
export async function passAnswer(
  parts: RouteCallParts,
  asked: () => Promise<UpstreamAnswer>,
  tools: readonly string[] | undefined,
  stop: AbortSignal,
): Promise<Told> {
  const { exchange } = parts;
  let answer: UpstreamAnswer;
  try {
    answer = await asked();
  } catch (error) {
    if (stop.aborted) return stopped(parts, stop);
    const late = (error as { code?: string }).code === 'UND_ERR_HEADERS_TIMEOUT';
    return refuse(
      parts,
      late ? 504 : 502,
      late ? 'does not answer in time' : 'cannot be reached',
      late ? 'timed_out' : 'unreachable',
    );
  }
  try {
    return await pass(parts, answer, tools);
  } catch {
    answer.body.destroy();
    if (stop.aborted) return stopped(parts, stop);
    if (!exchange.begun) return refuse(parts, 502, 'broke its answer off', 'cut');
    exchange.cut();
    return { outcome: 'cut' };
  } finally {
    if (exchange.gone.aborted) answer.body.destroy();
  }
}

async function pass(
  parts: RouteCallParts,
  answer: UpstreamAnswer,
  tools: readonly string[] | undefined,
): Promise<Told> {
  const { exchange, route, message, seal, events } = parts;
  const { statusCode: status, body } = answer;
  const type = headerOf(answer.headers, 'content-type') ?? '';
  const problem = problemOf(parts, answer, type);
  if (problem) {
    drop(body);
    return problem();
  }
  if (message && message.kind !== 'request' && status < 300) {
    drop(body);
    exchange.send({ status: 202 }); // nothing answers a notification or a reply, whatever came with the status
    return { outcome: 'ok' };
  }
  const headers = downHeaders(answer.headers);
  if (message?.method === 'initialize' && status === 200) {
    const upstreamSession = headerOf(answer.headers, 'mcp-session-id');
    const { protocolVersion } = (message.body.params ?? {}) as { protocolVersion?: unknown };
    headers['mcp-session-id'] = seal({
      upstream: upstreamSession === undefined ? {} : { [route.name]: upstreamSession },
      version: String(protocolVersion).slice(0, 32),
    });
  }
  const id = message?.kind === 'request' ? message.id : undefined;
  if (message?.method === 'tools/list' && id !== undefined && status === 200) {
    const rewrite: Rewrite = (list) => showTools(list, { route, allowed: tools });
    if (isStream(type)) {
      const rewriter = eventRewriter({ change: (list) => rewriteMessage(list, id, rewrite) });
      exchange.begin(status, headers);
      await stream(parts, body, (chunk) => rewriter.feed(chunk));
      return { outcome: 'ok' };
    }
    const list = rewriteMessage(JSON.parse(await whole(body, LARGEST_LIST)), id, rewrite);
    exchange.send({ status, body: list, headers });
    return toldBy(list);
  }
  const heard = listener(type, id);
  const length = Number(headerOf(answer.headers, 'content-length') ?? Number.NaN);
  const rewriter = events && isStream(type) ? eventRewriter(events) : undefined;
  if (length <= WHOLE && !rewriter) {
    const bytes = Buffer.from(await body.arrayBuffer());
    heard.push(bytes);
    exchange.begin(status, { ...headers, 'content-length': String(bytes.length) });
    exchange.end(bytes);
  } else {
    exchange.begin(status, headers);
    if (isStream(type)) exchange.flush();
    await stream(parts, body, (chunk) => {
      heard.push(chunk);
      return rewriter ? rewriter.feed(chunk) : chunk;
    });
  }
  return status < 400 ? heard.end() : { outcome: 'http_error' };
}

/** What of an upstream's answer can't be passed on as it is. */
function problemOf(
  parts: RouteCallParts,
  { statusCode: status, headers }: UpstreamAnswer,
  type: string,
): (() => Told) | undefined {
  const { route, message, exchange } = parts;
  const isRelay = route.entry.disposition === 'relay';
  if (status === 401 || status === 403) {
    if (!isRelay)
      return () => refuse(parts, 502, `refuses the credential of the gateway (${status})`, 'http_error');
    return () => relayed(parts, status, headers);
  }
  if (status >= 300 && status < 400) return () => refuse(parts, 502, 'answers with a redirect', 'http_error');
  const readable = isStream(type) || /^application\/json\b/i.test(type);
  if (status >= 400) {
    if (readable) return undefined;
    return () => refuse(parts, status >= 500 ? 502 : status, `answers with status ${status}`, 'http_error');
  }
  if (
    message?.kind === 'request' &&
    (status === 202 || status === 204 || headers['content-length'] === '0')
  ) {
    return () => refuse(parts, 502, 'answers a request without a body', 'http_error');
  }
  if (message?.kind === 'request' && !readable) {
    return () =>
      refuse(parts, 502, 'answers with something that is neither JSON nor an event stream', 'http_error');
  }
  if (exchange.method === 'GET' && !isStream(type)) {
    return () => refuse(parts, 502, 'answers a stream with something else', 'http_error');
  }
  return undefined;
}

/** An identity that the upstream refuses: its status and challenge, pointing at our own document (G8, G26). */
function relayed(parts: RouteCallParts, status: number, upstream: IncomingHttpHeaders): Told {
  const { exchange, route, message, metadataUrl } = parts;
  const given = headerOf(upstream, 'www-authenticate') ?? '';
  const error = /\berror="([\w.-]{1,64})"/.exec(given)?.[1];
  const challenge = `Bearer ${error === undefined ? '' : `error="${error}", `}resource_metadata="${metadataUrl}"`;
  const entry = route.entry;
  const asRpc =
    entry.disposition === 'relay' && entry.relayErrors === 'jsonrpc' && message?.kind === 'request';
  const text = `Unauthorized: ${route.name} refuses the identity token${error === undefined ? '' : ` (${error})`}`;
  exchange.send({
    ...rpcError(asRpc ? 200 : status, message?.id ?? null, -32_001, text),
    ...(!asRpc && { headers: { 'www-authenticate': challenge } }),
  });
  return { outcome: 'http_error' };
}

function refuse(parts: RouteCallParts, status: number, what: string, outcome: CallEnded['outcome']): Told {
  const { exchange, route, message } = parts;
  exchange.send(
    rpcError(status, message?.id ?? null, UPSTREAM_FAILED, `The upstream of ${route.name} ${what}.`),
  );
  return { outcome };
}

function stopped({ exchange }: RouteCallParts, { reason }: AbortSignal): Told {
  if (exchange.gone.aborted) return { outcome: 'cancelled' };
  if (exchange.begun) exchange.end();
  else if (reason === KEY_ENDED) exchange.send(keyEnded);
  else exchange.send({ status: 503, body: { detail: 'The gateway is stopping.' } });
  return { outcome: 'cut' };
}

async function stream(
  { exchange }: RouteCallParts,
  body: Body,
  through: (chunk: Buffer) => Buffer | string,
): Promise<void> {
  for await (const chunk of body) {
    const next = through(chunk as Buffer);
    if (next.length > 0) await exchange.write(next);
  }
  exchange.end();
}

async function whole(body: Body, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += (chunk as Buffer).length;
    if (size > limit) throw new RangeError('too large');
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** Reads what nobody needs, so that its connection can be used again; a body that is long or slow ends with it. */
function drop(body: Body): void {
  body.dump({ limit: DROPPED, signal: AbortSignal.timeout(DROPPED_MS) }).catch(() => body.destroy());
}

const isStream = (type: string): boolean => /^text\/event-stream\b/i.test(type);

function headerOf(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}
