/**
 * The protected-resource documents of relay routes (G13): `document.ts` reads one, `documents.ts` keeps it for a while,
 * `served.ts` has the entry speak where the upstream says nothing, and `endpoint.ts` serves it with `resource` rewritten.
 */
export { Documents } from './documents.ts';
export { discoveryRoutes } from './endpoint.ts';
