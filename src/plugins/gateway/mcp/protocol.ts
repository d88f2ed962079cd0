import type { IncomingHttpHeaders } from 'node:http';
import { isObject } from '../../../core/kernel/json.ts';
import type { SealedSessions, Session } from '../session/sealed-sessions.ts';
import { ACCEPTED_CODINGS, codingOf, isAccepted } from './content-coding.ts';
import {
  type Answer,
  HEADER_MISMATCH,
  INVALID_PARAMS,
  type RequestId,
  rpcError,
  SERVER_ERROR,
  UNAUTHORIZED,
  UNSUPPORTED_REVISION,
} from './json-rpc.ts';
import { type Message, REVISION_META, readMessage } from './message.ts';

/** In a request to a server on this machine: the id of the virtual key that calls. No upstream elsewhere gets it. */
export const CALLING_KEY = 'x-holdfast-calling-key';

/** Protocol revisions that requests may name, oldest first. */
export const REVISIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'] as const;

/** From this revision on there are no sessions: each request says all that it needs. */
export const STATELESS_SINCE = '2026-07-28';
/** The newest revision with sessions. */
export const NEWEST_SESSIONED = '2025-11-25';

export const isKnown = (revision: string): boolean => (REVISIONS as readonly string[]).includes(revision);
export const isStateless = (revision: string | undefined): boolean =>
  revision !== undefined && revision >= STATELESS_SINCE;

/** Which rules a request follows: those of its own revision (G18). */
export type Era = 'sessions' | 'stateless';

const text = (headers: IncomingHttpHeaders, name: string): string | undefined => {
  const value = headers[name];
  return typeof value === 'string' ? value : undefined;
};

/**
 * The body counts first: a proxy that drops a header must not change what a request means. Only the stateless
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

/** @returns the answer to a POST without both media types, a GET without the stream's, or a body that is no JSON or compressed otherwise */
export function mediaProblem(method: 'GET' | 'POST', headers: IncomingHttpHeaders): Answer | undefined {
  const accept = text(headers, 'accept') ?? '';
  const type = text(headers, 'content-type') ?? '';
  const isCoded = headers['content-encoding'] !== undefined;
  if (method === 'POST' && accept === USUAL && type === JSON_TYPE && !isCoded) return undefined;
  const wanted = method === 'POST' ? ['application/json', 'text/event-stream'] : ['text/event-stream'];
  if (!wanted.every((one) => accepts(accept, one))) {
    return rpcError(406, null, SERVER_ERROR, `Not Acceptable: Client must accept ${wanted.join(' and ')}`);
  }
  if (method === 'POST' && !/^application\/json\s*(?:;|$)/i.test(type)) {
    return rpcError(415, null, SERVER_ERROR, 'Unsupported Media Type: Content-Type must be application/json');
  }
  const coding = codingOf(text(headers, 'content-encoding'));
  if (method === 'POST' && coding !== undefined && !isAccepted(coding)) {
    const what = `Unsupported Media Type: Content-Encoding must be one of ${ACCEPTED_CODINGS}`;
    return { ...rpcError(415, null, SERVER_ERROR, what), headers: { 'accept-encoding': ACCEPTED_CODINGS } };
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
function revisionProblem(headers: IncomingHttpHeaders, message?: Message): Answer | undefined {
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
function headerMismatch(headers: IncomingHttpHeaders, message: Message): Answer | undefined {
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

const sessionMissing = (id: Message['id']): Answer =>
  rpcError(400, id ?? null, SERVER_ERROR, 'Bad Request: Mcp-Session-Id header is required');
export const sessionUnknown = (id: Message['id']): Answer =>
  rpcError(404, id ?? null, UNAUTHORIZED, 'Session not found');

/** A value that a header can't hold as it is travels as `=?base64?<UTF-8 in base64>?=` (revision 2026-07-28). */
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const WRAPPED = /^=\?base64\?(.*)\?=$/s;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function encodeHeaderValue(value: string): string {
  if (PLAIN.test(value) && !WRAPPED.test(value)) return value;
  return `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;
}

/** @returns the value, or undefined when it is wrapped but not well-formed */
export function decodeHeaderValue(value: string): string | undefined {
  const wrapped = WRAPPED.exec(value)?.[1];
  if (wrapped === undefined) return value;
  if (!BASE64.test(wrapped)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(wrapped, 'base64'));
  } catch {
    return undefined;
  }
}

/** A request that keeps to its protocol. */
export interface Read {
  readonly message: Message | undefined;
  readonly session: Session | undefined;
}

/**
 * Holds a request against its protocol, before anything is decided about it.
 *
 * @param binding whose session it must be
 * @returns what it says, or the answer to what is wrong with it
 */
export function readRequest(
  { method, headers }: { readonly method: 'GET' | 'POST' | 'DELETE'; readonly headers: IncomingHttpHeaders },
  body: unknown,
  sessions: SealedSessions,
  binding: string,
): Read | Answer {
  const media = method === 'DELETE' ? undefined : mediaProblem(method, headers);
  if (media) return media;
  let message: Message | undefined;
  if (method === 'POST') {
    const read = readMessage(Buffer.isBuffer(body) ? body : Buffer.alloc(0));
    if ('code' in read) return rpcError(400, read.id, read.code, read.text);
    message = read;
  }
  const revision = revisionProblem(headers, message);
  if (revision) return revision;
  if (eraOf(headers, message) === 'stateless') {
    if (!message) return { status: 405, headers: { allow: 'POST' } };
    return headerMismatch(headers, message) ?? { message, session: undefined };
  }
  if (message?.method === 'initialize') return { message, session: undefined };
  const id = headers['mcp-session-id'];
  if (typeof id !== 'string') return sessionMissing(message?.id);
  const session = sessions.open(id, binding);
  return session ? { message, session } : sessionUnknown(message?.id);
}

/** A session belongs to one key and one endpoint, in every process that knows the key; a rotation does not end it. */
export function bindingOf({ id }: { readonly id: string }, endpoint: string): string {
  return `${id}/${endpoint}`;
}
