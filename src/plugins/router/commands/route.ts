import type { McpRoute } from '../../../core/contracts/mcp-routes.ts';
import type { RouterServerOptions } from '../mcp-server.ts';
import { type CommandSettings, openTarget } from './target.ts';

/** The route `router_ro` of a router plugin: what its commands read, served to agents. Loaded with the first request. */
export function routerRoute(
  settings: CommandSettings,
  dataDir: string,
  transaction: RouterServerOptions['transaction'],
): McpRoute {
  const { raSources } = settings;
  return {
    name: 'router_ro',
    onDemand: true,
    server: async () => {
      const { routerServer } = await import('../mcp-server.ts');
      return routerServer({ target: openTarget({}, { dataDir }, settings), dataDir, raSources, transaction });
    },
  };
}
