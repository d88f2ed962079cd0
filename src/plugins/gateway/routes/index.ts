/**
 * The route table: `entry.ts` is what an entry may say, `definition.ts` adds the environment, `open.ts` makes a route of it,
 * and `live-routes.ts` is the table that serves, changed by `reload.ts` under the decisions of `gateway.routes/table`.
 */
export { credentialFree, overwrite, relay } from './entry.ts';
