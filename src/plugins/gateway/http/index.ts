/**
 * What is answered beside MCP: the REST paths (keys, budgets and the list of servers, for the holder of the master key, and
 * `/key/info`: G14, G15), the paths that clients try by mistake (`edges.ts`), and the shapes of errors.
 */
export { type AdminParts, adminEndpoints } from './admin.ts';
export { edgeRoutes, watchUnknownPaths } from './edges.ts';
export { surfaceErrorBody } from './surface-errors.ts';
