import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { authenticate } from '../keys/caller.ts';
import { logOwnFault } from './failed.ts';
import type { GatewayParts } from './parts.ts';

/** Stands where a body would: its key has the gateway hold too much already, so that it was not read. */
export const UNREAD: unique symbol = Symbol('a body that was not read');

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<void>;

/**
 * Gives the handlers of a scope whole bodies as they came, and lets them answer before one is read: callers without a
 * key, for some hundred strangers could else have the gateway hold gigabytes that nobody looks at, and a key that has it
 * hold enough (`HeldBodies`).
 */
export function takeBodies(
  scope: Pick<HttpSurface, 'addHook' | 'addContentTypeParser'> &
    Pick<FastifyInstance, 'removeAllContentTypeParsers'>,
  parts: () => GatewayParts,
): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  scope.addHook('onRequest', (request, reply, done) => {
    const { keys, bodies } = parts();
    const caller = authenticate(request.headers, keys);
    if (!('rule' in caller)) {
      if (bodies.hold(request.id, caller.id, bodyLength(request.raw), reply.raw)) return done();
      request.body = UNREAD;
    }
    // Not `done`: the answer ends the request here.
    (request.routeOptions.handler as Handler)(request, reply).catch((error) => {
      logOwnFault(parts().services.logger, { correlation: request.id }, error);
      reply.raw.destroy();
    });
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
