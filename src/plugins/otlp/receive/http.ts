import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { sourceOf } from '../../../core/host/http/addresses.ts';
import type { WriteException } from '../../../core/host/http/admission.ts';
import { BodyTooLarge, readBody } from '../../../core/host/http/bounded-body.ts';
import type { HttpSurface, SurfaceError } from '../../../core/host/http/contract.ts';
import { dropBody } from '../../../core/host/http/requests.ts';
import { HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Encoding, Signal } from '../decode/decode.ts';
import { OtlpError } from '../errors.ts';
import { type BudgetShare, exportResponse, type Receiver, type Refusal, rpcStatus } from './receiver.ts';

const SIGNALS: readonly Signal[] = ['traces', 'metrics', 'logs'];
const REJECTED = {
  traces: 'rejectedSpans',
  metrics: 'rejectedDataPoints',
  logs: 'rejectedLogRecords',
} as const;
const JSON_TYPE = 'application/json';
const PROTOBUF_TYPE = 'application/x-protobuf';
const OTLP_BODIES: WriteException = {
  types: [JSON_TYPE, PROTOBUF_TYPE],
  because: 'OTLP over HTTP has both encodings',
};

/** Gives errors of the surface itself, which no route has handled, the form that a collector's errors have. */
export function otlpErrorBody({ status, what, remedy }: SurfaceError): unknown {
  if (status === 405 || status === 415) return `${what}\n`;
  return { code: status >= 500 ? 14 : 3, message: `${what} ${remedy}` };
}

/** `POST /v1/traces`, `/v1/metrics` and `/v1/logs` (O1, O2, O4). */
export function otlpRoutes(http: HttpSurface, receiver: Receiver, bodyLimit: number): void {
  http.register((scope, _options, registered) => {
    scope.removeAllContentTypeParsers();
    // The route reads the body itself: within limits, and only when its sender is admitted.
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    scope.addHook('onRequest', (request, reply, done) => {
      const refusal = receiver.refusalOf(request.headers.authorization, sourceOf(request));
      const unsupported = refusal ? undefined : unsupportedMedia(request);
      if (!refusal && unsupported === undefined) return done();
      if (!refusal?.isFlood) dropBody(request.raw, bodyLimit);
      if (refusal) refuse(request, reply, refusal);
      else reply.code(415).type('text/plain; charset=utf-8').send(unsupported);
    });
    for (const signal of SIGNALS) {
      scope.post(`/v1/${signal}`, { config: { writes: OTLP_BODIES } }, (request, reply) =>
        serve(receiver, request, reply, signal, bodyLimit),
      );
    }
    registered();
  });
}

async function serve(
  receiver: Receiver,
  request: FastifyRequest,
  reply: FastifyReply,
  signal: Signal,
  bodyLimit: number,
): Promise<unknown> {
  const share = receiver.share(Number(request.headers['content-length'] ?? 0));
  if ('status' in share) {
    dropBody(request.raw, bodyLimit);
    return refuse(request, reply, share);
  }
  try {
    const bytes = await bodyOf(request.raw, share, bodyLimit);
    if (bytes instanceof HoldfastError) {
      // The rest of this body would be read as the next request.
      reply.header('connection', 'close');
      return refuse(request, reply, receiver.refuse(bytes));
    }
    const body = { signal, encoding: encodingOf(request), gzip: isGzip(request), bytes };
    const answer = await receiver.take(body, request.headers.authorization ?? '');
    if ('status' in answer) return refuse(request, reply, answer);
    if (body.encoding === 'protobuf') return reply.type(PROTOBUF_TYPE).send(exportResponse(answer));
    const { refused, message } = answer;
    const partialSuccess =
      refused === 0 ? {} : { [REJECTED[signal]]: String(refused), errorMessage: message };
    return reply.type(JSON_TYPE).send({ partialSuccess });
  } finally {
    share.release();
  }
}

/**
 * Reads a body within its limit and its share of the memory for bodies.
 *
 * @returns an error when it is too large, or when there is no memory for it
 */
async function bodyOf(
  stream: IncomingMessage,
  share: BudgetShare,
  limit: number,
): Promise<Buffer | HoldfastError> {
  const announced = Number(stream.headers['content-length'] ?? 0);
  const onGrowth = (bytes: number) => {
    if (!share.grow(bytes)) throw new OtlpError('HF_OTLP_OVERLOADED');
  };
  try {
    // The stream stays open, or its sender could not be answered.
    const body = stream.iterator({ destroyOnReturn: false });
    return (await readBody(body, limit, { announced, onGrowth })).bytes;
  } catch (error) {
    if (error instanceof BodyTooLarge) return new OtlpError('HF_OTLP_BODY_TOO_LARGE');
    if (isCoded(error, 'HF_OTLP_OVERLOADED')) return error;
    throw error;
  }
}

/** Answers in the encoding of the request, as the protocol demands. */
function refuse(request: FastifyRequest, reply: FastifyReply, refusal: Refusal): FastifyReply {
  const { status, grpc, message, retrySeconds } = refusal;
  reply.code(status);
  if (retrySeconds !== undefined) reply.header('retry-after', retrySeconds);
  if (encodingOf(request) === 'protobuf') {
    return reply.type(PROTOBUF_TYPE).send(rpcStatus(refusal));
  }
  return reply.type(JSON_TYPE).send({ code: grpc, message });
}

/** @returns a collector's answer to a media type or an encoding that it does not support */
function unsupportedMedia({ headers }: FastifyRequest): string | undefined {
  const type = mediaType(headers['content-type']);
  if (type !== JSON_TYPE && type !== PROTOBUF_TYPE) {
    return `415 unsupported media type, supported: [${JSON_TYPE}, ${PROTOBUF_TYPE}]\n`;
  }
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding === 'identity' || encoding === 'gzip') return undefined;
  return '415 unsupported content encoding, supported: [gzip, identity]\n';
}

function encodingOf({ headers }: FastifyRequest): Encoding {
  return mediaType(headers['content-type']) === PROTOBUF_TYPE ? 'protobuf' : 'json';
}

function isGzip({ headers }: FastifyRequest): boolean {
  return headers['content-encoding'] === 'gzip';
}

function mediaType(header: string | undefined): string {
  return header?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}
