import type { IncomingHttpHeaders } from 'node:http';
import { type Answer, rpcError } from './answers.ts';
import type { Message } from './message.ts';
import { isKnown, isStateless, REVISIONS } from './revisions.ts';

const HEADER_MISMATCH = -32_020;
const UNSUPPORTED_REVISION = -32_022;
const BAD_REQUEST = -32_000;
const SESSION_UNKNOWN = -32_001;

/** Which rules a request follows: those of its own revision (G18). */
export type Era = 'sessions' | 'stateless';

const text = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
};

/** The revision that a request names, in its header or in the message itself. */
export function revisionOf(headers: IncomingHttpHeaders, message?: Message): string | undefined {
  return text(headers, 'mcp-protocol-version') ?? message?.revision;
}

export function eraOf(headers: IncomingHttpHeaders, message?: Message): Era {
  return isStateless(revisionOf(headers, message)) ? 'stateless' : 'sessions';
}

/** @returns the answer to a POST without both media types, a GET without the stream's, or a body that is no JSON */
export function mediaProblem(method: 'GET' | 'POST', headers: IncomingHttpHeaders): Answer | undefined {
  const accept = text(headers, 'accept') ?? '';
  const wanted = method === 'POST' ? ['application/json', 'text/event-stream'] : ['text/event-stream'];
  if (!wanted.every((type) => accepts(accept, type))) {
    return rpcError(406, null, BAD_REQUEST, `Not Acceptable: Client must accept ${wanted.join(' and ')}`);
  }
  if (method === 'POST' && !/^application\/json\s*(?:;|$)/i.test(text(headers, 'content-type') ?? '')) {
    return rpcError(415, null, BAD_REQUEST, 'Unsupported Media Type: Content-Type must be application/json');
  }
  return undefined;
}

function accepts(accept: string, type: string): boolean {
  return accept.split(',').some((range) => {
    const name = range.split(';', 1)[0]?.trim().toLowerCase();
    return name === type || name === '*/*' || name === `${type.split('/', 1)[0]}/*`;
  });
}

/** @returns the answer to a revision that nobody speaks */
export function revisionProblem(headers: IncomingHttpHeaders, message?: Message): Answer | undefined {
  const named = text(headers, 'mcp-protocol-version');
  const id = message?.id ?? null;
  if (named !== undefined && !isKnown(named)) {
    return rpcError(400, id, UNSUPPORTED_REVISION, `Unsupported protocol version: ${named.slice(0, 32)}`, {
      supported: REVISIONS,
      requested: named.slice(0, 32),
    });
  }
  return undefined;
}

/** The headers of the stateless revision must say what the body says (field notes: `-32020`). */
export function headerMismatch(headers: IncomingHttpHeaders, message: Message): Answer | undefined {
  const id = message.id ?? null;
  const mismatch = (what: string) => rpcError(400, id, HEADER_MISMATCH, `Header mismatch: ${what}`);
  const named = text(headers, 'mcp-protocol-version');
  if (message.revision !== undefined && named !== message.revision) {
    return mismatch('MCP-Protocol-Version is not what the message names');
  }
  if (message.method === undefined) return undefined;
  if (text(headers, 'mcp-method') !== message.method)
    return mismatch('Mcp-Method is not the method of the message');
  const subject = subjectOf(message);
  if (subject !== undefined && text(headers, 'mcp-name') !== subject) {
    return mismatch('Mcp-Name is not the name in the message');
  }
  return undefined;
}

/** What `Mcp-Name` repeats. */
function subjectOf({ method, name, body }: Message): string | undefined {
  if (method === 'tools/call' || method === 'prompts/get') return name;
  if (method !== 'resources/read') return undefined;
  const { uri } = body.params as { uri?: unknown };
  return typeof uri === 'string' ? uri : undefined;
}

export const sessionMissing = (id: Message['id']): Answer =>
  rpcError(400, id ?? null, BAD_REQUEST, 'Bad Request: Mcp-Session-Id header is required');
export const sessionUnknown = (id: Message['id']): Answer =>
  rpcError(404, id ?? null, SESSION_UNKNOWN, 'Session not found');
