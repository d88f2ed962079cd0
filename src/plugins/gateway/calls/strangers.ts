import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpSurface } from '../../../core/http/index.ts';
import { identify } from '../keys/caller.ts';
import type { GatewayParts } from './parts.ts';

type Handler = (request: FastifyRequest, reply: FastifyReply) => unknown;

/**
 * Lets the handlers of a scope answer callers without a key before their bodies are read: some hundred strangers could
 * else have the gateway hold gigabytes that nobody looks at.
 */
export function strangersFirst(scope: Pick<HttpSurface, 'addHook'>, parts: () => GatewayParts): void {
  scope.addHook('onRequest', (request, reply, done) => {
    const { keys, masterId } = parts();
    if (!('rule' in identify(request.headers, keys, masterId()))) return done();
    // Not `done`: the answer ends the request here.
    (request.routeOptions.handler as Handler)(request, reply);
  });
}
