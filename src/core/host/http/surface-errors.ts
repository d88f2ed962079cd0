import type { FastifyError, FastifyRequest } from 'fastify';
import { type HoldfastError, isCoded, toErrorBody } from '../../kernel/errors/holdfast-error.ts';
import { KernelError } from '../../kernel/errors/kernel-error.ts';
import { HostError } from '../errors/host-error.ts';
import { maskText } from '../logging/mask-text.ts';
import type { SurfaceOptions } from './contract.ts';
import { headersOfAll } from './requests.ts';

/** An `import` of node:http would load Node's fetch, too. */
const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** What an error's sentences need to know of the surface. */
export interface SurfaceLimits {
  /** Bytes. */
  readonly bodyLimit: number;
  readonly maxHeaderSize: number;
  /** Characters. */
  readonly maxParamLength: number;
  readonly requestTimeoutMs: number;
}

/** What the client sent, as far as an answer may repeat it. */
const shown = (text: string): string => maskText(text, 200);

/** The path without its query, which may hold a secret. */
export function shownPath(request: FastifyRequest): string {
  return shown(request.url.split('?', 1)[0] ?? '');
}

/** Turns whatever ended a request into a coded error: ours as it is, fastify's by its code, all others HF_INTERNAL. */
export function codedError(error: unknown, request: FastifyRequest, limits: SurfaceLimits): HoldfastError {
  if (isCoded(error)) return error;
  switch ((error as FastifyError | undefined)?.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return new HostError('HF_HTTP_BODY_TOO_LARGE', {
        limit: request.routeOptions.bodyLimit ?? limits.bodyLimit,
      });
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE':
      return new HostError('HF_HTTP_MEDIA_TYPE', {
        type: shown(request.headers['content-type'] ?? '(none)'),
        types: 'application/json',
      });
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return new HostError('HF_HTTP_PATH_TOO_LONG', { limit: limits.maxParamLength });
    case 'FST_ERR_BAD_URL':
      return requestInvalid('its path is not valid');
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
    case 'ECONNRESET':
      return requestInvalid('its body ended early');
    default:
      return new KernelError('HF_INTERNAL', {}, { cause: error });
  }
}

/** What Node's parser refused before there was a request. */
export function connectionError(error: NodeJS.ErrnoException, limits: SurfaceLimits): HoldfastError {
  switch (error.code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new HostError('HF_HTTP_REQUEST_SLOW', { ms: limits.requestTimeoutMs });
    case 'HPE_HEADER_OVERFLOW':
      return new HostError('HF_HTTP_HEADERS_TOO_LARGE', { limit: limits.maxHeaderSize });
    case 'HPE_INVALID_METHOD':
      return requestInvalid('its method is not known');
    case 'HPE_UNEXPECTED_CONTENT_LENGTH':
    case 'HPE_INVALID_CONTENT_LENGTH':
    case 'HPE_INVALID_TRANSFER_ENCODING':
      return requestInvalid('the length of its body is ambiguous');
    default:
      return requestInvalid('its first line or its headers are malformed');
  }
}

/** The body of an error answer; a surface's own shape that fails falls back to the plain one. */
export function errorBody(
  error: HoldfastError,
  shape: SurfaceOptions['errorBody'],
  url: string | undefined,
): unknown {
  const plain = toErrorBody(error);
  try {
    return shape ? shape(plain, url?.split('?', 1)[0]) : plain;
  } catch {
    return plain;
  }
}

/** A whole answer to what a connection sent, also as text for one that has no response object. */
export function wholeAnswer(
  status: number,
  body: unknown,
  correlation: string,
): { readonly headers: Readonly<Record<string, string>>; readonly text: string; readonly raw: string } {
  const text = JSON.stringify(body);
  const headers = {
    ...headersOfAll(correlation),
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(text)),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return {
    headers,
    text,
    raw: [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', text].join('\r\n'),
  };
}

function requestInvalid(reason: string): HoldfastError {
  return new HostError('HF_HTTP_REQUEST_INVALID', { reason });
}
