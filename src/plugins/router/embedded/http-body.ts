import { Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import type { FastifyRequest, preParsingHookHandler, RequestPayload } from 'fastify';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { parseJsonBody } from '../../../core/host/http/json-body.ts';
import { RouterError } from '../errors.ts';

/**
 * Inflates a gzip body before it is parsed; the limit of the body counts what comes out of it. Clients of a router's daemon
 * may send one.
 *
 * @throws HF_ROUTER_BODY_ENCODING another content encoding, or another charset than UTF-8
 */
export const readEncodedBody: preParsingHookHandler = (request, _reply, payload, done) => {
  const encoding = (request.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  const charset = charsetOf(request);
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
    return done(new RouterError('HF_ROUTER_BODY_ENCODING', { what: `charset ${shown(charset)}` }));
  if (encoding === 'identity' || encoding === '') return done(null, payload);
  if (encoding !== 'gzip' && encoding !== 'x-gzip')
    return done(new RouterError('HF_ROUTER_BODY_ENCODING', { what: `content encoding ${shown(encoding)}` }));
  done(null, inflated(payload));
};

/** The body inflated, chunk by chunk, so that a reader that stops at its limit also stops the inflating. */
function inflated(payload: RequestPayload): RequestPayload {
  let received = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      received += chunk.length;
      done(null, chunk);
    },
  });
  const gunzip = createGunzip();
  const readable = new Transform({ transform: (chunk, _encoding, done) => done(null, chunk) });
  gunzip.on('error', () => {
    readable.destroy(
      new HostError('HF_HTTP_BODY_INVALID', { reason: 'it is not gzip, or it ends too early' }),
    );
  });
  payload.on('error', (error) => readable.destroy(error));
  payload.pipe(counted).pipe(gunzip).pipe(readable);
  readable.on('close', () => {
    payload.unpipe(counted);
    counted.destroy();
    gunzip.destroy();
  });
  // The length that was announced is that of the encoded body.
  return Object.defineProperty(readable, 'receivedEncodedLength', { get: () => received });
}

/**
 * Looks at the body of a request whose body is otherwise ignored. Clients send none, `{}`, or a form without fields; what
 * says that it is JSON must be.
 *
 * @throws HF_HTTP_BODY_INVALID
 */
export function checkIgnoredBody(request: FastifyRequest, body: Buffer): void {
  const isJson = /^application\/json\b/i.test(request.headers['content-type'] ?? '');
  if (!isJson || body.length === 0) return;
  const value = parseJsonBody(body);
  if (typeof value !== 'object' || value === null)
    throw new HostError('HF_HTTP_BODY_INVALID', { reason: 'it is no object' });
}

function charsetOf({ headers }: FastifyRequest): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(headers['content-type'] ?? '')?.[1]?.toLowerCase();
}

function shown(word: string): string {
  return word.replace(/[^\w.-]/g, '?').slice(0, 40);
}
