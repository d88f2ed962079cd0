import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from '../../../core/kernel/json.ts';
import { type Answer, rpcError } from './answers.ts';
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  SERVER_ERROR,
  UNAUTHORIZED,
  UNSUPPORTED_REVISION,
} from './codes.ts';
import { decodeHeaderValue } from './header-value.ts';
import { type Message, REVISION_META, type RequestId } from './message.ts';
import { isKnown, isStateless, REVISIONS } from './revisions.ts';

/** Which rules a request follows: those of its own revision (G18). */
export type Era = 'sessions' | 'stateless';

const text = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
};

/**
 * Told by the body first: a proxy that drops a header must not change what a request means. Only the stateless
 * revision's messages name their revision; `initialize` begins a session unless it does.
 */
export function eraOf(headers: IncomingHttpHeaders, message?: Message): Era {
  if (message?.kind === 'reply') return 'sessions';
  const named = message?.revision;
  if (named !== undefined && (message?.method !== 'initialize' || isStateless(named))) return 'stateless';
  return isStateless(text(headers, 'mcp-protocol-version')) ? 'stateless' : 'sessions';
}

/** What clients by the official SDKs accept, and send. */
const USUAL = 'application/json, text/event-stream';
const JSON_TYPE = 'application/json';

/** @returns the answer to a POST without both media types, a GET without the stream's, or a body that is no JSON */
export function mediaProblem(method: 'GET' | 'POST', headers: IncomingHttpHeaders): Answer | undefined {
  const accept = text(headers, 'accept') ?? '';
  const type = text(headers, 'content-type') ?? '';
  if (method === 'POST' && accept === USUAL && type === JSON_TYPE) return undefined;
  const wanted = method === 'POST' ? ['application/json', 'text/event-stream'] : ['text/event-stream'];
  if (!wanted.every((one) => accepts(accept, one))) {
    return rpcError(406, null, SERVER_ERROR, `Not Acceptable: Client must accept ${wanted.join(' and ')}`);
  }
  if (method === 'POST' && !/^application\/json\s*(?:;|$)/i.test(type)) {
    return rpcError(415, null, SERVER_ERROR, 'Unsupported Media Type: Content-Type must be application/json');
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
  const header = text(headers, 'mcp-protocol-version');
  const id = message?.id ?? null;
  if (eraOf(headers, message) === 'sessions') {
    // `initialize` agrees on a revision, so that what its header says does not count.
    if (header === undefined || message?.method === 'initialize' || isKnown(header)) return undefined;
    const versions = REVISIONS.join(', ');
    const what = `Unsupported protocol version: ${header.slice(0, 32)} (supported versions: ${versions})`;
    return rpcError(400, id, SERVER_ERROR, `Bad Request: ${what}`);
  }
  const named = message?.revision;
  if (named !== undefined && header !== undefined && named !== header) {
    return mismatch(id, `the message names revision ${named.slice(0, 32)}, MCP-Protocol-Version another one`);
  }
  const requested = (named ?? header ?? '').slice(0, 32);
  if (isKnown(requested) && isStateless(requested)) return undefined;
  return rpcError(400, id, UNSUPPORTED_REVISION, `Unsupported protocol version: ${requested}`, {
    supported: REVISIONS,
    requested,
  });
}

/** What a request of the stateless revision repeats in its headers must be what its body says. */
export function headerMismatch(headers: IncomingHttpHeaders, message: Message): Answer | undefined {
  const { kind, method } = message;
  const id = message.id ?? null;
  const named = text(headers, 'mcp-method');
  if (kind !== 'request') {
    return named === undefined || named === method
      ? undefined
      : mismatch(id, 'Mcp-Method is not the method of the message');
  }
  if (message.revision === undefined) {
    if (method === 'initialize') return mismatch(id, 'initialize has no place in the revision of the header');
    return rpcError(400, id, INVALID_PARAMS, `Invalid params: _meta lacks ${REVISION_META}`);
  }
  if (text(headers, 'mcp-protocol-version') === undefined) {
    return mismatch(id, 'the required header MCP-Protocol-Version is absent');
  }
  if (named !== method) {
    const what =
      named === undefined ? 'the required header Mcp-Method is absent' : 'Mcp-Method names another';
    return mismatch(id, `the message names method ${method}; ${what}`);
  }
  const subject = subjectOf(message);
  const header = text(headers, 'mcp-name');
  if (header === undefined) {
    return subject === undefined ? undefined : mismatch(id, 'the required header Mcp-Name is absent');
  }
  const decoded = decodeHeaderValue(header);
  if (decoded === undefined) return mismatch(id, 'Mcp-Name is no well-formed base64 value');
  return subject === undefined || decoded === subject
    ? undefined
    : mismatch(id, 'Mcp-Name is not the name in the message');
}

/** What `Mcp-Name` repeats, by method. */
const SUBJECTS: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
};

/** @returns the subject of a message, which the stateless revision repeats in `Mcp-Name` */
export function subjectOf({ method, body }: Message): string | undefined {
  if (method === undefined || !Object.hasOwn(SUBJECTS, method)) return undefined;
  const subject = isObject(body.params) ? body.params[SUBJECTS[method] ?? ''] : undefined;
  return typeof subject === 'string' ? subject : undefined;
}

function mismatch(id: RequestId | null, what: string): Answer {
  return rpcError(400, id, HEADER_MISMATCH, `Bad Request: the request headers and body disagree: ${what}`);
}

export const sessionMissing = (id: Message['id']): Answer =>
  rpcError(400, id ?? null, SERVER_ERROR, 'Bad Request: Mcp-Session-Id header is required');
export const sessionUnknown = (id: Message['id']): Answer =>
  rpcError(404, id ?? null, UNAUTHORIZED, 'Session not found');
