import type { IncomingHttpHeaders } from 'node:http';
import type { AccessCall, DoorRule } from '../../../machines/mcp-access.ts';
import { keyId } from './key-id.ts';
import type { KeyRegistry } from './registry.ts';

/** The header by which a virtual key admits, on every route. */
export const ADMISSION_HEADER = 'x-gateway-api-key';

/** Who calls: a key that is known, or somebody to turn away. What was presented is gone after this. */
export type Caller =
  | {
      readonly id: string;
      /** Id of the presented value. */
      readonly presented: string;
      readonly authorization: AccessCall['authorization'];
    }
  | { readonly rule: DoorRule };

/** A caller with a known key. */
export type Known = Extract<Caller, { id: string }>;

const BEARER = /^Bearer ([\x21-\x7e]{1,4096})$/;

/**
 * Tells who calls (G3, G9, G25). The admission header alone admits; `Authorization` is looked at only to find a key that
 * should not be there.
 *
 * @param masterId id of the master key
 */
export function identify(headers: IncomingHttpHeaders, keys: KeyRegistry, masterId: string): Caller {
  const header = headers[ADMISSION_HEADER];
  const authorization = authorizationOf(headers.authorization, keys, masterId);
  if (header === undefined) {
    if (authorization === 'master_key') return { rule: 'master_key_presented' };
    return { rule: authorization === 'virtual_key' ? 'key_only_in_authorization' : 'no_key' };
  }
  const value = typeof header === 'string' ? BEARER.exec(header)?.[1] : undefined;
  if (value === undefined) return { rule: 'malformed_key' };
  const presented = keyId(value);
  if (presented === masterId) return { rule: 'master_key_presented' };
  const id = keys.find(presented);
  return id === undefined ? { rule: 'unknown_key' } : { id, presented, authorization };
}

/** Any scheme, or none: a key leaks the same in each. */
function authorizationOf(
  header: string | undefined,
  keys: KeyRegistry,
  masterId: string,
): AccessCall['authorization'] {
  if (header === undefined || header.trim() === '') return undefined;
  const value = header.trim().split(/\s+/).at(-1) ?? '';
  const presented = keyId(value);
  if (presented === masterId) return 'master_key';
  return keys.find(presented) === undefined ? 'bearer' : 'virtual_key';
}
