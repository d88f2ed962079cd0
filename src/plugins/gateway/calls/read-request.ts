import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { type Answer, rpcError } from '../mcp/answers.ts';
import {
  eraOf,
  headerMismatch,
  mediaProblem,
  revisionProblem,
  sessionMissing,
  sessionUnknown,
} from '../mcp/checks.ts';
import { type Message, readMessage } from '../mcp/message.ts';
import type { SealedSessions, Session } from '../session/sealed-sessions.ts';

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
  { method, headers }: Pick<Exchange, 'method' | 'headers'>,
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
export function bindingOf({ id }: AuthenticatedKey, endpoint: string): string {
  return `${id}/${endpoint}`;
}
