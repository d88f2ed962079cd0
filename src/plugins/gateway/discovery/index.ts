/**
 * The protected-resource documents of relay routes (G13): `document.ts` reads one, `documents.ts` keeps it for a while,
 * `endpoint.ts` serves it with `resource` rewritten.
 */
export { Documents } from './documents.ts';
export { discoveryRoutes } from './endpoint.ts';
