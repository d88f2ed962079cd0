import { readJsonBody } from '../../../core/host/http/json-body.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, type RequestId } from './json-rpc.ts';

/** One JSON-RPC message of a client, as far as the gateway looks at it. */
export interface Message {
  readonly kind: 'request' | 'notification' | 'reply';
  /** Only a request or a notification has one. */
  readonly method: string | undefined;
  /** Only a request has one. */
  readonly id: RequestId | undefined;
  /** `params.name`: the tool, prompt or task that is meant. */
  readonly name: string | undefined;
  /** The revision that the message itself names, from 2026-07-28 on. */
  readonly revision: string | undefined;
  readonly body: Readonly<Record<string, unknown>>;
}

/** A body that is no single JSON-RPC message: HTTP 400 with this JSON-RPC error. */
export interface Malformed {
  readonly code: number;
  readonly text: string;
  readonly id: RequestId | null;
}

/**
 * Written in JSON where a round trip through a double would change them: long digits, fractions, exponents, a negative
 * zero. The version in every message is none of them: no number ends at a quote.
 */
const DELICATE_NUMBER = /\d{16}|\d[.eE](?!0")|-0/;
/** Where a message of the stateless revision names its revision: a key of `params._meta`. */
export const REVISION_META = 'io.modelcontextprotocol/protocolVersion';
const LONGEST_NAME = 256;

/** A tool as its upstream knows it, with the arguments that a call gets whatever the client gives, and where it gives none. */
export interface CalledTool {
  readonly name: string;
  readonly fixed: Readonly<Record<string, unknown>>;
  readonly defaults: Readonly<Record<string, unknown>>;
}

/** No arguments of the operator's: the client's are not touched. */
export const NONE: Readonly<Record<string, unknown>> = Object.freeze({});

/** Reads a client's body. What it sees is what the upstream will get: see `encode`. */
export function readMessage(body: Buffer): Message | Malformed {
  const json = parseBody(body);
  if ('code' in json) return json;
  const { value } = json;
  if (Array.isArray(value))
    return malformed(INVALID_REQUEST, 'Invalid Request: a batch is part of revision 2025-03-26 alone');
  if (!isObject(value) || value.jsonrpc !== '2.0')
    return malformed(INVALID_REQUEST, 'Invalid Request: no JSON-RPC 2.0 message');
  const { method, id, params } = value;
  if (id !== undefined && !isRequestId(id)) {
    return malformed(INVALID_REQUEST, 'Invalid Request: an id is a string or a number');
  }
  const known = id as RequestId | undefined;
  if (method === undefined) {
    const isReply = id !== undefined && ('result' in value || 'error' in value);
    if (!isReply)
      return malformed(INVALID_REQUEST, 'Invalid Request: neither a request nor an answer', known);
    return { kind: 'reply', method: undefined, id: known, name: undefined, revision: undefined, body: value };
  }
  if (typeof method !== 'string' || method === '' || method.length > LONGEST_NAME) {
    return malformed(INVALID_REQUEST, 'Invalid Request: the method is no name', known);
  }
  if (params !== undefined && !isObject(params)) {
    return malformed(INVALID_REQUEST, 'Invalid Request: params are an object', known);
  }
  const name = params?.name;
  if (method === 'tools/call' && (typeof name !== 'string' || name.length > LONGEST_NAME)) {
    return malformed(INVALID_REQUEST, 'Invalid Request: tools/call names its tool', known);
  }
  const asked = method === 'initialize' ? params?.protocolVersion : undefined;
  if (asked !== undefined && typeof asked !== 'string') {
    return malformed(INVALID_PARAMS, 'Invalid params: protocolVersion is no protocol version', known);
  }
  const meta = isObject(params?._meta) ? params._meta : {};
  const revision = meta[REVISION_META];
  if (revision !== undefined && typeof revision !== 'string') {
    return malformed(INVALID_PARAMS, `Invalid params: ${REVISION_META} is no protocol version`, known);
  }
  return {
    kind: id === undefined ? 'notification' : 'request',
    method,
    id: known,
    name: typeof name === 'string' ? name : undefined,
    revision,
    body: value,
  };
}

/**
 * The bytes for the upstream. The message is written anew from what was decided on: of two fields of one name an upstream
 * might have read the other one.
 *
 * @param tool replaces `params.name`, and some of the arguments
 */
export function encode({ body }: Message, tool?: CalledTool): string {
  if (tool === undefined) return JSON.stringify(body);
  const { name, fixed, defaults } = tool;
  const params = body.params as Readonly<Record<string, unknown>>;
  const given = params.arguments;
  const isChanged = fixed !== NONE || defaults !== NONE;
  return JSON.stringify({
    ...body,
    params: {
      ...params,
      name,
      ...(isChanged && { arguments: { ...defaults, ...(isObject(given) ? given : {}), ...fixed } }),
    },
  });
}

/** Parses a client's body so that writing it again keeps every number as it was written. */
export function parseBody(body: Buffer): { readonly value: unknown } | Malformed {
  try {
    const { value, text } = readJsonBody(body);
    return { value: DELICATE_NUMBER.test(text) ? JSON.parse(text, keepNumbers) : value };
  } catch (error) {
    if (isCoded(error, 'HF_HTTP_BODY_DEEP')) {
      const { limit } = error.details;
      return malformed(INVALID_REQUEST, `Invalid Request: the message is nested deeper than ${limit} levels`);
    }
    if (isCoded(error, 'HF_HTTP_BODY_INVALID')) return malformed(PARSE_ERROR, `Parse error: ${error.what}`);
    throw error;
  }
}

/** Parses JSON so that writing it again keeps every number as it was written. @throws SyntaxError */
export function parseExact(text: string): unknown {
  return DELICATE_NUMBER.test(text) ? JSON.parse(text, keepNumbers) : JSON.parse(text);
}

/** Keeps a number as it was written. */
function keepNumbers(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  return typeof value === 'number' && source !== undefined && source !== String(value)
    ? rawJson(source)
    : value;
}

const json = JSON as typeof JSON & {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
};
const rawJson = (source: string): object => json.rawJSON(source);
/** A string, or a number however it was written. */
export const isRequestId = (value: unknown): boolean =>
  typeof value === 'string' || typeof value === 'number' || json.isRawJSON(value);

function malformed(code: Malformed['code'], text: string, id: RequestId | null = null): Malformed {
  return { code, text, id };
}

/** @param json a JSON-RPC message in one line @returns it as an event of a stream */
export const messageEvent = (json: string): string => `event: message\ndata: ${json}\n\n`;
