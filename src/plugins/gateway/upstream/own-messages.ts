/**
 * The gateway's own messages to an upstream, and the changes to a client's message for an upstream that speaks another
 * kind of protocol revision.
 */
import { isObject } from '../../../core/kernel/json.ts';
import { type Message, REVISION_META } from '../mcp/message.ts';
import { STATELESS_SINCE } from '../mcp/protocol.ts';

/** Ids of the gateway's own requests; a client's own ids go to the one upstream that it calls. */
export const OWN_ID = 'holdfast';
const META_PREFIX = 'io.modelcontextprotocol/';
const CAPABILITIES_META = `${META_PREFIX}clientCapabilities`;

/** Asks an upstream whether it speaks the stateless revision. */
export const DISCOVER: Message = {
  ...ownMessage(
    'server/discover',
    { _meta: { [REVISION_META]: STATELESS_SINCE, [CAPABILITIES_META]: {} } },
    OWN_ID,
  ),
  revision: STATELESS_SINCE,
};

/** A message of the stateless revision, as servers of sessions read it. */
export function sessioned(message: Message): Message {
  const { params } = message.body;
  if (!isObject(params) || !isObject(params._meta)) return { ...message, revision: undefined };
  const kept = Object.entries(params._meta).filter(([name]) => !name.startsWith(META_PREFIX));
  const _meta = Object.fromEntries(kept);
  return { ...message, revision: undefined, body: { ...message.body, params: { ...params, _meta } } };
}

/** @param id undefined for a notification */
export function ownMessage(method: string, params: object | undefined, id?: string): Message {
  const body = { jsonrpc: '2.0', ...(id && { id }), method, ...(params && { params }) };
  const kind = id === undefined ? 'notification' : 'request';
  return { kind, method, id, name: undefined, revision: undefined, body };
}
