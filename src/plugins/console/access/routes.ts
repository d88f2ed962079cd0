import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { operatorName } from '../../../core/host/operations/control-client.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import { ConsoleError } from '../errors.ts';
import type { Access, Caller } from './access.ts';
import { ANSWER_HEADERS, LOGIN_PAGE, LOGIN_SCRIPT, LOGIN_STYLE } from './login-page.ts';

/** Where `holdfast console` gets a code. */
export const CODE_PATH = '/console/code';

/** What `holdfast console` gets. */
export interface NewCode {
  readonly code: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  /** Address of the console's surface; absent where it does not listen. */
  readonly url?: string;
}

/** Who asks is known by the rights on the control socket. */
export function serveCodes(surface: HttpSurface, access: Access, url: () => string | undefined): void {
  const body = z.strictObject({ by: z.string().min(1).max(64).default(operatorName) });
  serveOperation(surface, CODE_PATH, body, ({ by }): NewCode => {
    const at = url();
    return { ...access.makeCode(by), ...(at !== undefined && { url: at }) };
  });
}

/** Nobody needs the surface's token for these: the console asks for its own login. */
export const OPEN = { config: { credential: 'open' } } as const;

const loginBody = z.strictObject({ code: z.string().min(1).max(64) });

/** The login page and what it posts to: all that is served without a login. Sets the headers of all answers. */
export function loginRoutes(http: HttpSurface, access: Access): void {
  http.addHook('onSend', (_request, reply, _payload, done) => {
    reply.headers(ANSWER_HEADERS);
    done();
  });
  const files: readonly (readonly [path: string, type: string, text: string])[] = [
    ['/login', 'text/html; charset=utf-8', LOGIN_PAGE],
    ['/login.js', 'text/javascript; charset=utf-8', LOGIN_SCRIPT],
    ['/login.css', 'text/css; charset=utf-8', LOGIN_STYLE],
  ];
  for (const [path, type, text] of files)
    http.get(path, OPEN, (_request, reply) => reply.type(type).send(text));

  http.post('/api/login', { ...OPEN, bodyLimit: 1_024 }, async (request, reply) => {
    const { data } = loginBody.safeParse(request.body);
    if (!data) throw new ConsoleError('HF_CONSOLE_REQUEST', { reason: 'it has no field `code`' });
    const { session, cookie } = await access.login(request, data.code);
    return reply.header('set-cookie', cookie).send({ expiresAt: session.expiresAt });
  });

  http.post('/api/logout', { ...OPEN, bodyLimit: 1_024 }, async (request, reply) => {
    const caller = requireCaller(access, request);
    return reply.header('set-cookie', await access.logout(request, caller)).send({});
  });
}

/** @throws HF_CONSOLE_LOGIN */
export function requireCaller(access: Access, request: FastifyRequest): Caller {
  const caller = access.callerOf(request);
  if (!caller) throw new ConsoleError('HF_CONSOLE_LOGIN');
  return caller;
}

/** @returns undefined after it has sent the browser to the login page */
export function callerOrLogin(
  access: Access,
  request: FastifyRequest,
  reply: FastifyReply,
): Caller | undefined {
  const caller = access.callerOf(request);
  if (caller) return caller;
  const next = request.url === '/' ? '' : `?next=${encodeURIComponent(request.url)}`;
  reply.code(303).header('location', `/login${next}`).send();
  return undefined;
}
