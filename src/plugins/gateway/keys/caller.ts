import type { IncomingHttpHeaders } from 'node:http';
import type { AccessCall, DoorRule, Misplaced } from '../../../machines/gateway/key.ts';
import { bearerIn, keyId, sameKey } from './directory.ts';
import {
  ADMISSION_HEADER,
  IN_AUTHORIZATION,
  type KnownKeys,
  keyIn,
  type Received,
  takeMisplaced,
} from './misplaced-key.ts';

/** Who calls: a key that is known, or somebody to turn away. What was presented is gone after this. */
export type Caller =
  | {
      readonly id: string;
      /** Id of the presented value. */
      readonly presented: string;
      readonly authorization: AccessCall['authorization'];
      /** A key somewhere else. */
      readonly misplaced?: Misplaced;
    }
  | {
      readonly rule: DoorRule;
      /** A key where none belongs. */
      readonly misplaced?: Misplaced;
    };

/** A caller with a known key. */
export type Known = Extract<Caller, { id: string }>;

/**
 * Tells who calls, and which key came where none belongs; that one is taken out of the headers.
 *
 * @param identified the caller, where that is known already
 */
export function whoCalls(request: Received, known: KnownKeys, identified?: Known): Caller {
  const caller = identified ?? identify(request.headers, known);
  const misplaced = takeMisplaced(request, known);
  if (!misplaced) return caller;
  if (!('rule' in caller)) return { ...caller, misplaced };
  const isGraver = !caller.misplaced || misplaced.key === 'master_key';
  return isGraver ? { ...caller, misplaced } : caller;
}

/**
 * Tells whose key came (G3, G9, G25). The admission header alone admits; `Authorization` is looked at only to find a key
 * that should not be there.
 */
export function identify(headers: IncomingHttpHeaders, known: KnownKeys): Caller {
  const header = headers[ADMISSION_HEADER];
  const authorization = authorizationOf(headers.authorization, known);
  if (header === undefined) {
    if (authorization === 'master_key') return { rule: 'master_key_presented' };
    return { rule: authorization === 'virtual_key' ? 'key_only_in_authorization' : 'no_key' };
  }
  const text = typeof header === 'string' ? header : header.join(' ');
  const refused = (rule: DoorRule) =>
    turnedAway(rule, keyIn(text, known) === 'master_key' ? 'master_key' : authorization);
  const value = bearerIn(text);
  if (value === undefined) return refused('malformed_key');
  const presented = keyId(value);
  if (sameKey(presented, known.masterId)) return { rule: 'master_key_presented' };
  const id = known.keys.find(presented);
  return id === undefined ? refused('unknown_key') : { id, presented, authorization };
}

function turnedAway(rule: DoorRule, found: AccessCall['authorization']): Caller {
  if (found === undefined || found === 'bearer') return { rule };
  return { rule, misplaced: { key: found, where: IN_AUTHORIZATION } };
}

function authorizationOf(header: string | undefined, known: KnownKeys): AccessCall['authorization'] {
  if (header === undefined || header.trim() === '') return undefined;
  return keyIn(header, known) ?? 'bearer';
}
