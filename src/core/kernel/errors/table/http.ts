import { type ErrorEntry, entry } from '../entry.ts';

/** Of HTTP surfaces and the control socket. */
export const httpErrors = {
  // HTTP surfaces
  HF_HTTP_REQUEST_INVALID: entry(
    400,
    'The request is not valid HTTP: {reason}.',
    'Send it with a common HTTP client; behind a proxy, look at what the proxy makes of it.',
  ),
  HF_HTTP_REQUEST_SLOW: entry(
    408,
    'The request was not complete within {ms} ms.',
    'Send it faster, or raise the requestTimeoutMs option of the surface.',
  ),
  HF_HTTP_HEADERS_TOO_LARGE: entry(
    431,
    'The headers are larger than {limit} bytes.',
    'Send fewer or shorter ones.',
  ),
  HF_HTTP_PATH_TOO_LONG: entry(
    414,
    'A part of the path is longer than {limit} characters.',
    'Correct the path; no name on this surface is that long.',
  ),
  HF_HTTP_ORIGIN: entry(
    403,
    'A web page of another origin may not change anything here.',
    'Call from the command line, or add the host of the page to the allowedHosts option.',
  ),
  HF_HTTP_BODY_INVALID: entry(
    400,
    'The body is not valid JSON: {reason}.',
    'Send one JSON document in UTF-8.',
  ),
  HF_HTTP_BODY_TOO_LARGE: entry(
    413,
    'The body is larger than {limit} bytes.',
    'Send less, or raise the bodyLimit option of the surface.',
  ),
  HF_HTTP_MEDIA_TYPE: entry(
    415,
    'Content type {type} is not understood here.',
    'Send the body with `content-type: application/json`.',
  ),
  HF_HTTP_NOT_FOUND: entry(
    404,
    'There is nothing at {method} {path}.',
    'See the table of surfaces in README.md.',
  ),
  HF_HTTP_METHOD: entry(405, '{method} is not possible on {path}.', 'Use one of: {allow}.'),
  HF_HTTP_HOST: entry(
    421,
    'The Host header names a host that this surface does not serve.',
    'Call it by its address, or add the name to the allowedHosts option.',
  ),
  HF_HTTP_UNAUTHORIZED: entry(
    401,
    'This surface needs a bearer token.',
    'Send `authorization: Bearer <token>` with the token configured for it.',
  ),
  HF_HTTP_TOKEN_REQUIRED: entry(
    500,
    'Surface {surface} would listen on {host}, beyond this machine, without a token.',
    'Configure a token file for it, or bind it to 127.0.0.1.',
  ),
  HF_HTTP_LISTEN: entry(
    500,
    'Surface {surface} cannot listen on {host}:{port}: {reason}.',
    'Stop what holds the port, or choose another with {variable} (0 means any free one).',
  ),
  HF_HTTP_STOPPING: entry(503, 'Holdfast is stopping.', 'Try again when it is back.'),
  HF_HTTP_TIMEOUT: entry(
    504,
    'No decision was made within {ms} ms.',
    'The result is unknown: read the state again before you repeat the request.',
  ),

  // Calls to other programs
  HF_HTTP_CALL: entry(
    502,
    'The call {method} {place} got no answer that could be used: {reason}.',
    'Look whether a program listens there, and whether this machine reaches it.',
  ),

  // The control socket
  HF_CONTROL_UNREACHABLE: entry(
    500,
    'The instance on {dir} cannot be asked: {reason}.',
    'Start it with `npm run up` if `holdfast status` says that it does not run; if it runs, be the user that it runs as.',
  ),
} as const satisfies Record<string, ErrorEntry>;
