import { isObject } from '../../../core/kernel/json.ts';
import { isRequestId, type Message, parseExact } from '../mcp/message.ts';

/*
 * Requests that servers make of the client (sampling, elicitation, roots). Their ids are each server's own; toward the
 * client they bear the server's name in front, so that its answer finds the way back without a table.
 */

const mark = (server: string, id: unknown): string => `${server}:${JSON.stringify(id)}`;

/** @returns the server and what it had named, or undefined for a value that `mark` did not make */
function unmark(marked: unknown): { readonly server: string; readonly original: unknown } | undefined {
  const [, server, json] = (typeof marked === 'string' && /^([a-z][a-z0-9_]*):(.+)$/s.exec(marked)) || [];
  if (server === undefined || json === undefined) return undefined;
  try {
    const original: unknown = parseExact(json);
    return isRequestId(original) ? { server, original } : undefined;
  } catch {
    return undefined;
  }
}

/** What a server says, as the client of an aggregate is to read it. */
export function fromServer(server: string, message: unknown): unknown {
  if (!isObject(message) || typeof message.method !== 'string') return message;
  const { params } = message;
  if (message.id === undefined) {
    if (message.method !== 'notifications/cancelled' || !isObject(params)) return message;
    return { ...message, params: { ...params, requestId: mark(server, params.requestId) } };
  }
  const id = mark(server, message.id);
  if (!isObject(params) || !isObject(params._meta) || params._meta.progressToken === undefined) {
    return { ...message, id };
  }
  const _meta = { ...params._meta, progressToken: mark(server, params._meta.progressToken) };
  return { ...message, id, params: { ...params, _meta } };
}

/** The one server that an answer or a progress of the client is for, and what it is to read. */
export function toServer(
  message: Message,
): { readonly server: string; readonly message: Message } | undefined {
  const { kind, method, body } = message;
  if (kind === 'reply') {
    const found = unmark(body.id);
    return found && { server: found.server, message: { ...message, body: { ...body, id: found.original } } };
  }
  if (method !== 'notifications/progress' || !isObject(body.params)) return undefined;
  const found = unmark(body.params.progressToken);
  if (!found) return undefined;
  const params = { ...body.params, progressToken: found.original };
  return { server: found.server, message: { ...message, body: { ...body, params } } };
}

/** Ids of events on the merged stream, by which a client resumes: of which server, and on which stream. */
export const eventId = (server: string, stream: 'call' | 'merged', id: string): string =>
  `${server}${stream === 'call' ? ':' : '*'}${id}`;

export function readEventId(
  header: string | string[] | undefined,
): { readonly server: string; readonly stream: 'call' | 'merged'; readonly id: string } | undefined {
  const [, server, joint, id] = /^([a-z][a-z0-9_]*)([:*])(.+)$/s.exec(String(header ?? '')) ?? [];
  if (server === undefined || id === undefined) return undefined;
  return { server, stream: joint === ':' ? 'call' : 'merged', id };
}
