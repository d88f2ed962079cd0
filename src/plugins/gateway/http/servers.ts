import { serverId } from '../keys/view.ts';
import type { RouteTable } from '../routes/route.ts';

/**
 * The servers behind the gateway, as clients and operators may know them (G15). An upstream's own address is not among
 * it: its query may hold a secret.
 *
 * @param publicUrl the gateway's base
 */
export function serverEntries({ routes, rejected }: RouteTable, publicUrl: string): unknown[] {
  return [
    ...[...routes.values()].map(({ name, entry, reason }) => ({
      server_id: serverId(name),
      server_name: name,
      url: `${publicUrl}/${name}/mcp`,
      transport: 'http',
      auth_type: entry.disposition === 'overwrite' ? 'bearer_token' : 'none',
      oauth_passthrough: entry.disposition === 'relay',
      extra_headers: entry.disposition === 'relay' ? ['Authorization'] : [],
      status: reason === undefined ? 'configured' : 'not configured',
      ...(reason !== undefined && { reason }),
      ...(entry.tools && { allowed_tools: entry.tools }),
    })),
    ...rejected.map(({ name, reason }) => ({
      server_id: null,
      server_name: name,
      oauth_passthrough: false,
      status: 'rejected',
      reason,
    })),
  ];
}
