// JSON-RPC as the gateway answers in it: ids, the codes of errors, and both kinds of answers.

/** What a request is known by to who sent it. */
export type RequestId = string | number;

/** Codes of JSON-RPC errors: the specification's, and below -32000 those that MCP and its servers use. */
export const PARSE_ERROR = -32_700;
export const INVALID_REQUEST = -32_600;
export const METHOD_NOT_FOUND = -32_601;
export const INVALID_PARAMS = -32_602;
export const INTERNAL_ERROR = -32_603;
/** A request that its server refuses for a reason of its own. */
export const SERVER_ERROR = -32_000;
/** The session is not known, or the caller must show an identity: clients begin anew. */
export const UNAUTHORIZED = -32_001;
export const HEADER_MISMATCH = -32_020;
export const UNSUPPORTED_REVISION = -32_022;

/** An answer of the gateway's own. */
export interface Answer {
  readonly status: number;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A JSON-RPC result in a 200. */
export function result(
  id: RequestId | null,
  value: unknown,
  headers?: Readonly<Record<string, string>>,
): Answer {
  return { status: 200, body: { jsonrpc: '2.0', id, result: value }, ...(headers && { headers }) };
}

/** A JSON-RPC error. @param status 200 unless the protocol wants another */
export function rpcError(
  status: number,
  id: RequestId | null,
  code: number,
  message: string,
  data?: unknown,
): Answer {
  return {
    status,
    body: { jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } },
  };
}
