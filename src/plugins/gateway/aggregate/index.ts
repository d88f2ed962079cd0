/**
 * `/mcp/` and `/mcp/sse`: all servers that a key may reach as one (G12). `endpoint.ts` takes requests, `aggregate-call.ts`
 * carries them out over one `branch.ts` a server, and `legs.ts` remembers sessions that came after the sealed one.
 */
export { aggregateEndpoint } from './endpoint.ts';
