import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { HttpSurface } from '../../core/host/http/contract.ts';
import { KEY_HEADER } from './keys/virtual-keys.ts';

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text;

/** An origin as browsers write it: scheme, host and port, and nothing behind it. */
export const originSchema: z.ZodType<string, string> = z
  .url({ protocol: /^https?$/ })
  .refine(isOrigin, 'an origin is scheme, host and port alone, e.g. https://app.example.net');

/** Request headers that a page may send: credentials, and those of the protocol. */
const HEADERS = [
  KEY_HEADER,
  'authorization',
  'content-type',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'x-mcp-servers',
  'x-mcp-tool-search',
].join(', ');
/** Answer headers that a page may read. */
const EXPOSED = 'mcp-session-id, www-authenticate, retry-after';
/** How long a browser remembers that it may call, seconds. */
const KEPT_S = 600;

/**
 * Lets pages of the configured origins call the endpoints of the protocol (CORS). Each origin is compared whole; cookies
 * never count here, so browsers are not told to send any.
 */
export class BrowserOrigins {
  readonly pages: ReadonlySet<string>;

  /** @param origins exact; none where no page may call */
  constructor(origins: readonly string[]) {
    this.pages = new Set(origins);
  }

  /** Lets the routes of a scope be called by pages, and answers their preflight requests. */
  serve(scope: Pick<HttpSurface, 'addHook' | 'route'>, paths: readonly string[]): void {
    if (this.pages.size === 0) return;
    scope.addHook('onRequest', (request, reply, done) => {
      this.#mark(request, reply);
      done();
    });
    for (const url of paths) {
      scope.route({
        method: 'OPTIONS',
        url,
        config: { pages: this.pages, credential: 'open' },
        handler: (_request, reply) => reply.code(204).headers(preflight).send(),
      });
    }
  }

  #mark({ headers: { origin } }: FastifyRequest, reply: FastifyReply): void {
    reply.header('vary', 'origin');
    if (origin === undefined || !this.pages.has(origin)) return;
    reply.headers({ 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED });
  }
}

const preflight = {
  'access-control-allow-methods': 'GET, POST, DELETE',
  'access-control-allow-headers': HEADERS,
  'access-control-max-age': String(KEPT_S),
};
