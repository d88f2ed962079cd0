import type { SurfaceError } from '../../core/host/http/contract.ts';
import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the console: a browser reads them, and `holdfast console` does. */
export const ConsoleError = defineErrors({
  HF_CONSOLE_LOGIN: {
    status: 401,
    what: 'The console asks for a login.',
    remedy: 'Run `holdfast console` on the machine of the instance, and open the link that it prints.',
  },
  HF_CONSOLE_CODE: {
    status: 403,
    what: 'This code is none, was used before, or is older than {minutes} minutes.',
    remedy: 'Run `holdfast console` again: each link works once.',
  },
  HF_CONSOLE_ATTEMPTS: {
    status: 429,
    what: 'Too many wrong codes came from this address.',
    remedy: 'Wait {seconds} seconds, then use a new link of `holdfast console`.',
  },
  HF_CONSOLE_NO_ADDRESS: {
    status: 409,
    what: 'The console of this instance listens on no address that a browser can open.',
    remedy: 'Give the console plugin a port in place of a socket, or open it through the proxy in front.',
  },
  HF_CONSOLE_PORT: {
    status: 400,
    what: '{text} is no port.',
    remedy: 'Give a number from 0 to 65535; 0 takes any free port.',
  },
  HF_CONSOLE_PAGE_SIZE: {
    status: 400,
    what: 'A page with records {from} to {to} would be larger than {most}, which no browser opens well.',
    remedy: 'Export a shorter range with --from and --to, or write a file for `holdfast open` with --out.',
  },
  HF_CONSOLE_NOT_BUILT: {
    status: 500,
    what: 'The viewer of exported pages is not built here.',
    remedy: 'In a checkout, run `node scripts/console.mjs`; otherwise install the package again.',
  },
  HF_CONSOLE_REQUEST: {
    status: 400,
    what: 'The request is not one that the console knows: {reason}.',
    remedy: 'Change it as /api/openapi.json describes.',
  },
  HF_CONSOLE_PATH: {
    status: 404,
    what: 'The API of the console has no such path.',
    remedy: 'See /api/openapi.json for those that it has.',
  },
  HF_CONSOLE_MISSING: {
    status: 404,
    what: 'There is no {what} {name} at that moment.',
    remedy: 'Choose another moment, or another name from the list.',
  },
  HF_CONSOLE_DEADLINE: {
    status: 503,
    what: 'The answer took longer than {seconds} s.',
    remedy: 'Ask about a shorter time or fewer records.',
  },
  HF_CONSOLE_STREAMS: {
    status: 503,
    what: 'So many windows follow the log that no more may: {most}.',
    remedy: 'Close some of them, or load the page again later.',
  },
  HF_CONSOLE_NOT_LIVE: {
    status: 409,
    what: 'This console shows a log that nothing writes: {what} needs a running instance.',
    remedy: 'Open the console of the running instance with `holdfast console`.',
  },
  HF_CONSOLE_PAST: {
    status: 409,
    what: 'Nothing can be done while the console shows the past.',
    remedy: 'Go back to now, look again, and then do it.',
  },
});

/** The body of an error below `/api/`; elsewhere it is the coded error itself. */
export function errorBody(error: SurfaceError, path: string | undefined): unknown {
  if (!path?.startsWith('/api/')) return error;
  const { code, what, remedy } = error;
  return { error: { code, message: what, action: remedy } };
}
