import { z } from 'zod';
import type { CallRequest } from '../../../machines/gateway/call-shapes.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import { withoutKey } from '../keys/misplaced-keys.ts';
import type { KeyLookup } from '../keys/virtual-keys.ts';
import type { Message } from '../mcp/message.ts';
import type { Route, ServedRoutes } from '../routes/route.ts';
import type { KeyUsageFacts } from './key-usage.ts';

/** Where a call goes: the one route, or for the aggregate all that it may go to. */
export interface CallTarget {
  /** Path of the endpoint, without a query. */
  readonly path: string;
  readonly routes: readonly string[];
  readonly route?: Route | undefined;
  /** Facts of a request whose message could not be read. Its `method` says why, in place of a JSON-RPC method. */
  readonly unread?: Pick<CallRequest, 'method' | 'unreadBytes'> & KeyUsageFacts;
}

/** A key where none belongs, in a message of the bus. */
export const misplacedSchema = z.object({ key: z.enum(['virtual_key', 'master_key']), where: z.string() });

/** A call in a message of the bus. */
export const callSchema = z.object({
  type: z.literal('CALL'),
  at: z.number(),
  presented: z.string(),
  routes: z.array(z.string()),
  table: z.number(),
  method: z.string(),
  tool: z.string().exactOptional(),
  toolUnlisted: z.literal(true).exactOptional(),
  authorization: z.enum(['bearer', 'virtual_key', 'master_key']).exactOptional(),
  misplaced: misplacedSchema.exactOptional(),
  relay: z.literal(true).exactOptional(),
  writes: z.literal(true).exactOptional(),
  cost: z.number().exactOptional(),
  unreadBytes: z.number().exactOptional(),
  openCount: z.number().exactOptional(),
  defaultLimit: z.number().exactOptional(),
  count: z.int().min(2).exactOptional(),
  cluster: z
    .object({
      host: z.string(),
      hosts: z.number(),
      isolatedMs: z.number().exactOptional(),
      graceMs: z.number().exactOptional(),
      isBehind: z.literal(true).exactOptional(),
      closedMs: z.number().exactOptional(),
      openAtBeat: z.number().exactOptional(),
      openElsewhere: z.number().exactOptional(),
    })
    .exactOptional(),
});

/** What the key's machine decides a call by. */
export type DecisionFacts = z.output<typeof callSchema>;

/**
 * What a call's key is asked to decide by; time and usage are added when it is asked.
 *
 * @param httpMethod of the HTTP request
 */
export function decisionFacts(
  { routes: served, keys }: { readonly routes: ServedRoutes; readonly keys: KeyLookup },
  httpMethod: Exchange['method'],
  { presented, authorization, misplaced }: AuthenticatedKey,
  message: Message | undefined,
  { routes, route, unread }: CallTarget,
): DecisionFacts {
  const isToolCall = message?.method === 'tools/call' && message.name !== undefined;
  const tool = isToolCall && route ? route.tools.upstreamName(message.name ?? '') : undefined;
  const cost = tool === undefined ? 0 : (route?.costOf(tool) ?? 0);
  const isUnlisted = isToolCall && (tool === undefined || !route?.tools.offers(tool));
  return {
    type: 'CALL',
    at: 0,
    presented,
    routes: [...routes],
    table: served.table.revision,
    method: withoutKey(methodOf(httpMethod, message), keys),
    ...(isToolCall && { tool: withoutKey(message.name ?? '', keys) }),
    ...(isUnlisted && { toolUnlisted: true as const }),
    ...(authorization && { authorization }),
    ...(misplaced && { misplaced }),
    ...(route?.needsIdentity && { relay: true as const }),
    ...(route?.entry.writes && { writes: true as const }),
    ...(cost > 0 && { cost }),
    ...unread,
  };
}

function methodOf(method: Exchange['method'], message: Message | undefined): string {
  if (message) return message.method ?? 'reply';
  return method === 'GET' ? 'stream' : 'close';
}
