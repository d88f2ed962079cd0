/** Codes of JSON-RPC errors: the specification's, and below -32000 those that MCP and its servers use. */
export const PARSE_ERROR = -32_700;
export const INVALID_REQUEST = -32_600;
export const METHOD_NOT_FOUND = -32_601;
export const INVALID_PARAMS = -32_602;
export const INTERNAL_ERROR = -32_603;
/** A request that its server refuses for a reason of its own. */
export const SERVER_ERROR = -32_000;
/** Of a session that is not known, and of a caller who must show an identity: clients begin anew. */
export const UNAUTHORIZED = -32_001;
export const HEADER_MISMATCH = -32_020;
export const UNSUPPORTED_REVISION = -32_022;
