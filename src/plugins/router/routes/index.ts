/**
 * The router's HTTP surface, as its document has it: bodies and status codes, and nothing that decides. A write goes to
 * `config-writes.ts`, a read to the embedded router. Only the plugin's `index.ts` registers it.
 */
export { type RouterParts, routerErrorBody, routerRoutes } from './http.ts';
