import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpSurface, SurfaceError } from '../../../core/host/http/contract.ts';
import { SELECTION_HEADER } from '../aggregate/selection.ts';
import { notFound } from '../mcp/answers.ts';
import type { Answer } from '../mcp/json-rpc.ts';
import type { ServedRoutes } from '../routes/route.ts';
import { restBody } from './rest.ts';

/** What clients look for. */
const NOT_FOUND = 'route not found';
/** Paths that answer errors in the shape of the REST paths, whether there is such a path or not. */
const REST = /^\/(?:key|budget|v1)\//;

/** The gateway's own shapes of what its surface refuses; clients of MCP look for `detail`. */
export function surfaceErrorBody(
  { code, status, what, remedy }: SurfaceError,
  path: string | undefined,
): unknown {
  const message = `${what} ${remedy}`;
  if (path !== undefined && REST.test(path)) return restBody({ status, message });
  return { detail: code === 'HF_HTTP_NOT_FOUND' ? NOT_FOUND : message, code };
}

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

interface EdgeServices {
  readonly routes: ServedRoutes;
  /** The configured public base, without a slash at its end. */
  readonly publicBase: string | undefined;
}

/**
 * The paths beside the endpoints that clients try (G11, G12): redirected where only a slash is wrong, and otherwise 404
 * with the path to use. They are answered before a body is read.
 */
export function edgeRoutes(http: HttpSurface, gateway: EdgeServices): void {
  const at = (url: string, answer: (request: FastifyRequest) => Answer) =>
    http.all(url, {
      config: { writes: { types: 'any', because: 'nothing is done here, whatever the body' } },
      // Not `done`: the answer ends the request here, with its body unread.
      onRequest: (request, reply, _done) => send(reply, answer(request)),
      handler: () => undefined,
    });
  at('/:server/mcp/', (request) => {
    const { routes, publicBase } = gateway;
    const { server } = request.params as { server: string };
    return routes.table.routes.has(server) ? redirect(publicBase, `/${server}/mcp`) : notFound;
  });
  at('/mcp', ({ headers }) =>
    headers[SELECTION_HEADER] === undefined ? notAServer : redirect(gateway.publicBase, '/mcp/'),
  );
  for (const path of ['/:server/mcp/sse', '/sse']) at(path, () => noStream);
  // The mount of the aggregate is declared for its own methods only: all others come here.
  at('/:server/sse', ({ params }) => ((params as { server: string }).server === 'mcp' ? noMethod : noStream));
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
