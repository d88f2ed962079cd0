/** A small MCP client for probes: one request, one answer, in JSON or as the first event that answers it. */
import { createParser } from 'eventsource-parser';
import { readBody } from '../../../core/host/http/bounded-body.ts';
import type { HttpClient, HttpStream } from '../../../core/host/http/client.ts';
import type { HttpHeaders } from '../../../core/host/http/connections.ts';
import { isObject, nestsDeeper } from '../../../core/kernel/json.ts';

/** Deadline of one request, milliseconds. */
export const PROBE_DEADLINE_MS = 10_000;
/** Longest answer that a probe reads, bytes, and the deepest JSON that it parses, levels. */
export const PROBE_ANSWER_LIMIT: number = 8 * 1024 * 1024;
const DEEPEST = 512;

/** What health probes call themselves. */
export const PROBE_NAME = 'holdfast-health';

export interface ProbeRequest {
  readonly url: URL;
  readonly method: string;
  readonly params?: object | undefined;
  /** Undefined for a notification. */
  readonly id: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export interface ProbeAnswer {
  readonly status: number;
  /** `json` or `events`; undefined for another content type. */
  readonly type: 'json' | 'events' | undefined;
  /** The JSON-RPC message; undefined when there is none. */
  readonly message: Readonly<Record<string, unknown>> | undefined;
  /** The body as far as it was read. */
  readonly text: string;
  /** @param name in lower case */
  header(name: string): string | undefined;
}

/**
 * Sends one message to an MCP endpoint.
 *
 * @throws HF_HTTP_CALL there is no whole answer; the reason of the signal
 */
export function sendProbe(
  http: HttpClient,
  { url, method, params, id, headers, signal }: ProbeRequest,
): Promise<ProbeAnswer> {
  const call = {
    method: 'POST',
    url: url.href,
    headers: { accept: 'application/json, text/event-stream', ...headers },
    json: { jsonrpc: '2.0', ...(id !== undefined && { id }), method, params },
    signal,
  } as const;
  return http.stream(call, async (answer) => {
    const header = (name: string) => firstValue(answer.headers, name);
    const contentType = header('content-type') ?? '';
    const isEvents = /^text\/event-stream\b/i.test(contentType);
    const isJson = /^application\/json\b/i.test(contentType);
    const type = isEvents ? 'events' : isJson ? 'json' : undefined;
    const { text, message } = isEvents ? await firstAnswer(answer.body, id) : await wholeAnswer(answer.body);
    return { status: answer.status, type, message, text, header };
  });
}

function firstValue(headers: HttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value[0] : value;
}

type Answer = Pick<ProbeAnswer, 'text' | 'message'>;

const NO_ANSWER: Answer = { text: '', message: undefined };

async function wholeAnswer(body: HttpStream['body']): Promise<Answer> {
  const text = (await readBody(body, PROBE_ANSWER_LIMIT)).bytes.toString('utf8');
  return { text, message: messageIn(text) };
}

/** An upstream may leave its event stream open, so reading ends with the event that answers the request. */
async function firstAnswer(body: HttpStream['body'], id: number | undefined): Promise<Answer> {
  if (id === undefined) return NO_ANSWER;
  let found: Answer | undefined;
  const parser = createParser({
    onEvent({ data }) {
      const message = messageIn(data);
      if (message?.id === id && message.method === undefined) found ??= { text: data, message };
    },
  });
  const decoder = new TextDecoder();
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > PROBE_ANSWER_LIMIT) break;
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (found) return found;
  }
  return NO_ANSWER;
}

function messageIn(text: string): ProbeAnswer['message'] {
  if (nestsDeeper(text, DEEPEST)) return undefined;
  try {
    const message: unknown = JSON.parse(text);
    return isObject(message) ? message : undefined;
  } catch {
    return undefined;
  }
}
