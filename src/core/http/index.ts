/**
 * HTTP surfaces: listeners that answer every malformed, foreign or unauthorised request themselves and drain
 * before they stop, and the exchanges by which a machine answers a request.
 *
 * Plugins declare surfaces through their context; the runtime makes them, with `surface.ts`, which loads fastify. This
 * folder imports logging, metrics, errors, ids and slabs.
 */
export { isLoopback } from './admission.ts';
export type {
  HttpSurface,
  Listener,
  Surface,
  SurfaceDependencies,
  SurfaceError,
  SurfaceOptions,
} from './contract.ts';
export { Exchanges, HTTP_REPLY, type Reply } from './exchanges.ts';
export { parseJsonBody } from './json-body.ts';
export type { Unhandled } from './measure.ts';
export { headersOfAll, type PlainPost, type ShortRoute } from './short-way.ts';
export { controlSocket, nearPath } from './socket-path.ts';
export { bracketed, urlOf } from './url.ts';
