import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpSurface, SurfaceError } from '../../../core/http/index.ts';
import { type Answer, notFound } from '../mcp/answers.ts';

/** Chooses servers on the aggregate; on `/mcp` it tells that the aggregate is meant. */
const SELECTION_HEADER = 'x-mcp-servers';

const NOT_FOUND = 'route not found';
const notAServer: Answer = {
  status: 404,
  body: { detail: `${NOT_FOUND}: a server is at /<server>/mcp, all of them together at /mcp/.` },
};
const noStream: Answer = {
  status: 404,
  body: {
    detail: `${NOT_FOUND}: a server has no SSE path; use /<server>/mcp, or /mcp/sse for all together.`,
  },
};

const noMethod: Answer = {
  status: 405,
  headers: { allow: 'GET, POST' },
  body: { detail: 'GET opens the stream of /mcp/sse, POST sends a message to it.' },
};

/** What the edges need to know. */
export interface EdgeParts {
  /** @returns whether a server of that name is served */
  readonly serves: (server: string) => boolean;
  /** The public base without a slash at its end; undefined when none is configured. */
  readonly publicBase: string | undefined;
}

/**
 * The paths beside the endpoints that clients try (G11, G12): redirected where only a slash is wrong, and otherwise 404
 * with the path to use. They are answered before a body is read.
 */
export function edgeRoutes(http: HttpSurface, parts: () => EdgeParts): void {
  const at = (url: string, answer: (request: FastifyRequest) => Answer) =>
    http.all(url, {
      // Not `done`: the answer ends the request here, with its body unread.
      onRequest: (request, reply, _done) => send(reply, answer(request)),
      handler: () => undefined,
    });
  at('/:server/mcp/', (request) => {
    const { serves, publicBase } = parts();
    const { server } = request.params as { server: string };
    return serves(server) ? redirect(publicBase, `/${server}/mcp`) : notFound;
  });
  at('/mcp', ({ headers }) =>
    headers[SELECTION_HEADER] === undefined ? notAServer : redirect(parts().publicBase, '/mcp/'),
  );
  for (const path of ['/:server/mcp/sse', '/sse']) at(path, () => noStream);
  // The mount of the aggregate is declared for its own methods only: all others come here.
  at('/:server/sse', ({ params }) => ((params as { server: string }).server === 'mcp' ? noMethod : noStream));
}

/**
 * Tells of a key in the URL of a path that is not there (G9): nobody looks at such a request, but proxies log it.
 *
 * @param tell of a request with one
 */
export function watchUnknownPaths(http: HttpSurface, tell: (request: FastifyRequest) => void): void {
  http.addHook('onResponse', (request, reply, done) => {
    if (reply.raw.statusCode === 404) tell(request);
    done();
  });
}

/** The gateway's own shape of an error; clients look for `detail`. */
export function gatewayErrorBody({ code, what, mend }: SurfaceError): unknown {
  return { detail: code === 'HF_HTTP_NOT_FOUND' ? NOT_FOUND : `${what} ${mend}`, code };
}

/**
 * 307 keeps method and body. Scheme and host are those that clients know (a proxy in front may speak TLS); without
 * them the path alone, which a client completes with what it used itself.
 */
function redirect(base: string | undefined, path: string): Answer {
  return { status: 307, headers: { location: `${base ?? ''}${path}` } };
}

function send(reply: FastifyReply, { status, headers = {}, body }: Answer): void {
  reply.code(status).headers(headers).send(body);
}
