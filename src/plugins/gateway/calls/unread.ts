import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpSurface } from '../../../core/http/index.ts';
import { identify } from '../keys/caller.ts';
import type { GatewayParts } from './parts.ts';

/** Stands where a body would: its key has the gateway hold too much already, so that it was not read. */
export const UNREAD: unique symbol = Symbol('a body that was not read');

type Handler = (request: FastifyRequest, reply: FastifyReply) => unknown;

/**
 * Lets the handlers of a scope answer before a body is read: callers without a key, for some hundred strangers could
 * else have the gateway hold gigabytes that nobody looks at, and a key that has it hold enough (`HeldBodies`).
 */
export function beforeBodies(scope: Pick<HttpSurface, 'addHook'>, parts: () => GatewayParts): void {
  scope.addHook('onRequest', (request, reply, done) => {
    const { keys, masterId, bodies } = parts();
    const caller = identify(request.headers, keys, masterId());
    if (!('rule' in caller)) {
      if (bodies.hold(request.id, caller.id, bodyLength(request.raw), reply.raw)) return done();
      request.body = UNREAD;
    }
    // Not `done`: the answer ends the request here.
    (request.routeOptions.handler as Handler)(request, reply);
  });
  scope.addHook('preHandler', ({ id, body }, _reply, done) => {
    if (Buffer.isBuffer(body)) parts().bodies.settle(id, body.length);
    done();
  });
}

/** @returns bytes; undefined for a body whose length is not told */
export function bodyLength({ headers }: Pick<IncomingMessage, 'headers'>): number | undefined {
  if (headers['transfer-encoding'] !== undefined) return undefined;
  return Number(headers['content-length'] ?? 0);
}
