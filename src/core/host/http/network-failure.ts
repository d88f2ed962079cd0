/** Why a call got no whole answer. */
export type HttpFailure =
  /** It was not complete in time. */
  | 'timeout'
  /** No connection was made: nothing was sent. */
  | 'connect'
  /** A connection was made, and its certificate or protocol was refused: nothing was sent. */
  | 'tls'
  /** The connection broke off: whether the server did what was asked is not known. */
  | 'broken'
  /** The answer is longer than the call allows. */
  | 'too_large'
  | 'other';

interface NetworkFailure {
  readonly failure: HttpFailure;
  /** Code of Node or undici, or the name of the error that has none. */
  readonly code: string;
  /** A part of a sentence; never a message of the network, which may quote what was sent. */
  readonly reason: string;
}

const CONNECT: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'its name cannot be resolved',
  EAI_AGAIN: 'its name cannot be resolved',
  EHOSTUNREACH: 'there is no way to that host',
  ENETUNREACH: 'there is no way to that network',
  ENOENT: 'there is no such socket',
  EACCES: 'this user may not connect to it',
};
const BROKEN: ReadonlySet<string> = new Set([
  'UND_ERR_SOCKET',
  'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
  'ECONNRESET',
  'EPIPE',
]);
const IDLE: ReadonlySet<string> = new Set([
  'IDLE_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
]);
const TLS = /^(?:ERR_TLS|ERR_SSL|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_MISMATCH|EPROTO)/;
/** undici's error of its parser, with and without a code. */
const NOT_HTTP = /^(?:HTTPParserError$|HPE_)/;
const TLS_REASONS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate comes from an authority that is not known',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate comes from an authority that is not known',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate comes from an authority that is not known',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  ERR_TLS_CERT_PIN: 'it shows another certificate than it announced',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  EPROTO: 'it does not speak TLS',
};

/** Says in words why Node or undici gave a call up. @param connectTimeoutMs that the connection was allowed */
export function networkFailure(error: unknown, connectTimeoutMs: number): NetworkFailure {
  const code = codeOf(error);
  const connectReason = CONNECT[code];
  if (connectReason !== undefined) return { failure: 'connect', code, reason: `${connectReason} (${code})` };
  if (code === 'CONNECT_TIMEOUT' || code === 'UND_ERR_CONNECT_TIMEOUT') {
    return { failure: 'connect', code, reason: `no connection within ${connectTimeoutMs / 1_000} s` };
  }
  if (IDLE.has(code)) {
    return { failure: 'timeout', code, reason: 'nothing more came in time' };
  }
  if (BROKEN.has(code)) return { failure: 'broken', code, reason: 'the connection broke off' };
  if (TLS.test(code)) {
    return { failure: 'tls', code, reason: `${TLS_REASONS[code] ?? 'TLS failed'} (${code})` };
  }
  if (NOT_HTTP.test(code))
    return { failure: 'other', code, reason: `its answer is not valid HTTP (${code})` };
  return { failure: 'other', code, reason: `it failed (${code})` };
}

/** Node wraps the failures of several addresses into one error, `fetch` each into a TypeError. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'UNKNOWN';
  if ('code' in error && typeof error.code === 'string') return error.code;
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error.cause;
  return inner instanceof Error ? codeOf(inner) : error.name;
}
