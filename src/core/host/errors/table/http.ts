import type { ErrorTable } from '../../../kernel/errors/holdfast-error.ts';

/** Errors of surfaces, of calls to others and of the control socket. */
export const httpErrors = {
  HF_HTTP_REQUEST_INVALID: {
    status: 400,
    what: 'The request is not valid HTTP: {reason}.',
    remedy: 'Send it with a common HTTP client; behind a proxy, check what the proxy forwards.',
  },
  HF_HTTP_REQUEST_SLOW: {
    status: 408,
    what: 'The request was not complete within {ms} ms.',
    remedy: 'Send it faster, or raise the requestTimeoutMs option of the surface.',
  },
  HF_HTTP_HEADERS_TOO_LARGE: {
    status: 431,
    what: 'The headers are larger than {limit} bytes.',
    remedy: 'Send fewer or shorter headers.',
  },
  HF_HTTP_PATH_TOO_LONG: {
    status: 414,
    what: 'A part of the path is longer than {limit} characters.',
    remedy: 'Correct the path; no name on this surface is that long.',
  },
  HF_HTTP_ORIGIN: {
    status: 403,
    what: 'A web page of another origin (scheme, host and port) may not change anything here.',
    remedy: 'Call from the command line. Behind a proxy with TLS, add its name to the allowedHosts option.',
  },
  HF_HTTP_BODY_INVALID: {
    status: 400,
    what: 'The body is not valid JSON: {reason}.',
    remedy: 'Send one JSON document in UTF-8.',
  },
  HF_HTTP_BODY_DEEP: {
    status: 400,
    what: 'The body is nested deeper than {limit} levels.',
    remedy: 'Send it flatter; deeper nesting is refused, whatever it holds.',
  },
  HF_HTTP_BODY_TOO_LARGE: {
    status: 413,
    what: 'The body is larger than {limit} bytes.',
    remedy: 'Send less, or raise the bodyLimit option of the surface.',
  },
  HF_HTTP_MEDIA_TYPE: {
    status: 415,
    what: 'Content type {type} is not supported here.',
    remedy: 'Send the body with `content-type: {types}`.',
  },
  HF_HTTP_NOT_FOUND: {
    status: 404,
    what: 'There is nothing at {method} {path}.',
    remedy: 'Look up what each port serves in docs/reference/surfaces.md.',
  },
  HF_HTTP_METHOD: {
    status: 405,
    what: '{method} is not possible on {path}.',
    remedy: 'Use one of: {allow}.',
  },
  HF_HTTP_HOST: {
    status: 421,
    what: 'The Host header names a host that this surface does not serve.',
    remedy: 'Call it by its address, or add the name to the allowedHosts option.',
  },
  HF_HTTP_UNAUTHORIZED: {
    status: 401,
    what: 'This surface needs a bearer token.',
    remedy: 'Send `authorization: Bearer <token>` with the token configured for it.',
  },
  HF_HTTP_TOKEN_REQUIRED: {
    status: 500,
    what: 'Surface {surface} would listen on {host}, beyond this machine, without a token.',
    remedy: 'Name a file with a token in its option `tokenFile`, or bind it to 127.0.0.1.',
  },
  HF_HTTP_TOKEN_MISSING: {
    status: 500,
    what: 'Surface {surface} has no token, and {option} demands one.',
    remedy: 'Name a file of mode 0600 with the token in its tokenFile option.',
  },
  HF_HTTP_TLS_REQUIRED: {
    status: 500,
    what: 'Surface {surface} would listen on {host}, beyond this machine, without TLS.',
    remedy:
      'Give it a certificate (option `tls: { certFile, keyFile }`), or bind it to 127.0.0.1. Where something in front of it keeps strangers away, e.g. a service of a cluster, write `insecure: true` into its options.',
  },
  HF_HTTP_CERTIFICATE: {
    status: 500,
    what: 'The certificate of surface {surface} cannot be used: {reason}.',
    remedy: 'Correct its `tls` option or the files: a certificate in PEM form, and its key with mode 0600.',
  },
  HF_HTTP_BUDGET: {
    status: 429,
    what: 'This caller writes more often than surface {surface} allows to one.',
    remedy:
      'Wait {seconds} s, as the header Retry-After says. The option writeBudget of the surface sets the rate; strangerBudget, where there is one, that of callers without a key.',
  },
  HF_HTTP_SECRETS: {
    status: 401,
    what: 'The answer holds secrets, which are given only to callers with the token of this surface, or on its Unix socket.',
    remedy:
      'Type `curl -H "authorization: Bearer $(cat FILE)" URL`, where FILE is the tokenFile of this surface in plugins.config.ts (`holdfast status --json` names it under surfaces). To give secrets to every local caller again, set `secretsNeedToken: false`.',
  },
  HF_HTTP_SOCKET: {
    status: 500,
    what: 'Surface {surface} cannot listen on the Unix socket {path}: {reason}.',
    remedy: 'Correct its socket option: a folder that only this user and root may change, e.g. below /run.',
  },
  HF_HTTP_LISTEN: {
    status: 500,
    what: 'Surface {surface} cannot listen on {host}:{port}: {reason}.',
    remedy: 'Stop the program that holds the port, or choose another with {variable} (0 means any free one).',
  },
  HF_HTTP_STOPPING: {
    status: 503,
    what: 'Holdfast is stopping.',
    remedy: 'Try again when it is back.',
  },
  HF_HTTP_TIMEOUT: {
    status: 504,
    what: 'No decision was made within {ms} ms.',
    remedy: 'The result is unknown: read the state again before you repeat the request.',
  },
  HF_HTTP_CALL: {
    status: 502,
    what: 'The call {method} {place} got no usable answer: {reason}.',
    remedy: 'Check that a program listens there and that this machine can reach it.',
  },
  HF_CONTROL_UNREACHABLE: {
    status: 500,
    what: 'The instance on {dir} cannot be reached: {reason}.',
    remedy:
      'Start it with `npm run up` if `holdfast status` says that it does not run; if it runs, run the command as the same user.',
  },
  HF_CONTROL_SILENT: {
    status: 504,
    what: 'The instance on {dir} (process {pid}) runs, and has answered nothing for {seconds} s: it is frozen, or one step of its work takes that long.',
    remedy:
      'Look at the process: `ps -o stat= -p {pid}` gives T where somebody stopped it, `kill -CONT {pid}` lets it go on. Then see whether what was asked is done: it may do it still.',
  },
} as const satisfies ErrorTable;
