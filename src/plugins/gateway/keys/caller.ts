import type { IncomingHttpHeaders } from 'node:http';
import type { CallRequest, MisplacedKey, RejectionRule } from '../../../machines/gateway/call-shapes.ts';
import { IN_AUTHORIZATION, keyIn, type ReceivedRequest, removeMisplacedKey } from './misplaced-keys.ts';
import { bearerIn, KEY_HEADER, type KeyLookup, keyId } from './virtual-keys.ts';

/** A caller whose virtual key is known. The presented value itself is not kept. */
export interface AuthenticatedKey {
  readonly id: string;
  /** Id of the presented value. */
  readonly presented: string;
  readonly authorization: CallRequest['authorization'];
  /** A key in another place of the request. */
  readonly misplaced?: MisplacedKey;
}

/** A caller without a known key, with the rule that rejects it. */
export interface RejectedCaller {
  readonly rule: RejectionRule;
  /** A key in a place where none belongs. */
  readonly misplaced?: MisplacedKey;
}

export type Caller = AuthenticatedKey | RejectedCaller;

/**
 * Authenticates a caller and searches the whole request for misplaced keys. Headers that hold one are deleted from the
 * request.
 *
 * @param authenticated the caller, when `authenticate` was called for this request before
 */
export function inspectCaller(
  request: ReceivedRequest,
  keys: KeyLookup,
  authenticated?: AuthenticatedKey,
): Caller {
  const caller = authenticated ?? authenticate(request.headers, keys);
  const misplaced = removeMisplacedKey(request, keys);
  if (!misplaced) return caller;
  if (!('rule' in caller)) return { ...caller, misplaced };
  const isMoreSevere = !caller.misplaced || misplaced.key === 'master_key';
  return isMoreSevere ? { ...caller, misplaced } : caller;
}

/**
 * Authenticates a caller by the key header alone (G3, G9, G25). `Authorization` is only searched for a key that
 * should not be there.
 */
export function authenticate(headers: IncomingHttpHeaders, keys: KeyLookup): Caller {
  const header = headers[KEY_HEADER];
  const authorization = authorizationOf(headers.authorization, keys);
  if (header === undefined) {
    if (authorization === 'master_key') return { rule: 'master_key_presented' };
    return { rule: authorization === 'virtual_key' ? 'key_only_in_authorization' : 'no_key' };
  }
  const text = typeof header === 'string' ? header : header.join(' ');
  const rejected = (rule: RejectionRule) =>
    rejectedCaller(rule, keyIn(text, keys) === 'master_key' ? 'master_key' : authorization);
  const value = bearerIn(text);
  if (value === undefined) return rejected('malformed_key');
  const presented = keyId(value);
  if (keys.isMaster(presented)) return { rule: 'master_key_presented' };
  const id = keys.find(presented);
  return id === undefined ? rejected('unknown_key') : { id, presented, authorization };
}

function rejectedCaller(rule: RejectionRule, authorization: CallRequest['authorization']): RejectedCaller {
  if (authorization === undefined || authorization === 'bearer') return { rule };
  return { rule, misplaced: { key: authorization, where: IN_AUTHORIZATION } };
}

function authorizationOf(header: string | undefined, keys: KeyLookup): CallRequest['authorization'] {
  if (header === undefined || header.trim() === '') return undefined;
  return keyIn(header, keys) ?? 'bearer';
}
