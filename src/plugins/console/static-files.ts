import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HostError } from '../../core/host/errors/host-error.ts';
import type { HttpSurface } from '../../core/host/http/contract.ts';
import type { Access } from './access/access.ts';
import { NOT_BUILT_PAGE } from './access/login-page.ts';
import { callerOrLogin, OPEN } from './access/routes.ts';

/** Where the build leaves the pages: `dist/console/`, from source and from the package. */
const PAGES_FOLDER: string = fileURLToPath(new URL('../../../dist/console/', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
};
/** Names of files, none of which begins with a dot: no path leads out of the folder. */
const PATH = /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/;
/** Addresses of pages: they may have dots, as the names of actors have. */
const PAGES = /^(?:$|(?:now|happened|stories|records|actors|compare|what-if|area)(?:$|\/))/;
/** Files there have a hash in their name. */
const HASHED = /^assets\//;

/** Serves the pages of the console. Every path without a file leads to the one page, which knows its own routes. */
export function pageRoutes(http: HttpSurface, access: Access, folder = PAGES_FOLDER): void {
  const serve = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    if (!callerOrLogin(access, request, reply)) return reply;
    const path = request.url.split('?', 1)[0]?.slice(1) ?? '';
    const isFile = !PAGES.test(path);
    const name = isFile ? path : 'index.html';
    const type = TYPES[extname(name)];
    const bytes = type !== undefined && PATH.test(name) ? await contentOf(folder + name) : undefined;
    if (bytes === undefined || type === undefined) {
      if (isFile)
        throw new HostError('HF_HTTP_NOT_FOUND', { method: request.method, path: `/${path.slice(0, 200)}` });
      return reply.type(TYPES['.html'] ?? '').send(NOT_BUILT_PAGE);
    }
    if (HASHED.test(name)) reply.header('cache-control', 'private, max-age=31536000, immutable');
    return reply.type(type).send(bytes);
  };
  http.get('/', OPEN, serve);
  http.get('/*', OPEN, serve);
}

async function contentOf(file: string): Promise<Buffer | undefined> {
  try {
    return await readFile(file);
  } catch {
    return undefined;
  }
}
