import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { BrowserOrigins } from '../browser-origins.ts';
import { notFound } from '../mcp/answers.ts';
import type { Answer } from '../mcp/json-rpc.ts';
import type { Route, ServedRoutes } from '../routes/route.ts';
import { type DocumentCache, ownDocument, servedDocument } from './document-cache.ts';

/** What the discovery endpoint uses. */
interface DiscoveryServices {
  readonly routes: ServedRoutes;
  /** @param host of the request @returns the base that clients see, without a slash at its end */
  readonly publicUrl: (host: string | undefined) => string;
  readonly documents: DocumentCache;
}

/** @param base of the gateway @returns the URL of a server's document */
export const documentUrl = (base: string, server: string): string =>
  `${base}/.well-known/oauth-protected-resource/${server}/mcp`;

const WELL_KNOWN = '/.well-known/oauth-protected-resource';
const OF_SERVER = `${WELL_KNOWN}/:server/mcp`;
const BEHIND_SERVER = `/:server/mcp${WELL_KNOWN}`;

/**
 * `GET /.well-known/oauth-protected-resource/<server>/mcp` (G13), and the other places where clients look: behind the URL of
 * the server, and at the root of the host, which is the document of the aggregate.
 */
export function discoveryRoutes(
  surface: HttpSurface,
  gateway: DiscoveryServices,
  origins: BrowserOrigins,
): void {
  surface.register((http, _options, registered) => {
    serveDocuments(http, gateway, origins);
    registered();
  });
}

function serveDocuments(
  http: Pick<HttpSurface, 'addHook' | 'get' | 'route'>,
  gateway: DiscoveryServices,
  origins: BrowserOrigins,
): void {
  const config = { pages: origins.pages };
  origins.serve(http, [WELL_KNOWN, OF_SERVER, BEHIND_SERVER]);
  const { routes, publicUrl, documents } = gateway;
  http.get(WELL_KNOWN, { config }, async (request, reply) => {
    const { status, body } = await rootDocument(publicUrl(request.headers.host), gateway);
    return reply.code(status).send(body);
  });
  const ofServer = async (request: FastifyRequest, reply: FastifyReply) => {
    const { server } = request.params as { server: string };
    const route = routes.table.routes.get(server);
    // The same answer for an unknown server and for one without OAuth, so that nobody learns which servers exist.
    const { status, body } = route?.needsIdentity
      ? await answerOf(route, `${publicUrl(request.headers.host)}/${server}/mcp`, documents)
      : notFound;
    return reply.code(status).send(body);
  };
  http.get(OF_SERVER, { config }, ofServer);
  http.get(BEHIND_SERVER, { config }, ofServer);
}

/**
 * The document of the host, which clients try last: where tokens for the identity routes come from, and all scopes that one
 * of them wants. A client of the aggregate logs in with it. Where they disagree about the authorization servers there is
 * none: one upstream must not choose where clients log in for another.
 */
async function rootDocument(
  resource: string,
  { routes, documents }: Pick<DiscoveryServices, 'routes' | 'documents'>,
): Promise<Answer> {
  const relays = [...routes.table.routes.values()].filter(({ needsIdentity, url }) => needsIdentity && url);
  const answers = await Promise.all(relays.map((route) => answerOf(route, resource, documents)));
  const found = answers.flatMap(({ status, body }) => (status === 200 && isObject(body) ? [body] : []));
  const [first] = found;
  if (!first) return answers[0] ?? notFound;
  const servers = new Set(found.map((one) => JSON.stringify(one.authorization_servers)));
  if (servers.size > 1) return severalServers;
  const scopes = [
    ...new Set(found.flatMap(({ scopes_supported: some }) => (Array.isArray(some) ? some : []))),
  ];
  const body = found.length === 1 ? first : { resource, authorization_servers: first.authorization_servers };
  return { status: 200, body: { ...body, ...(scopes.length > 0 && { scopes_supported: scopes }) } };
}

const severalServers: Answer = {
  status: 404,
  body: {
    detail: `The servers here have different authorization servers: each has its own document at ${WELL_KNOWN}/<server>/mcp.`,
  },
};

async function answerOf(route: Route, resource: string, documents: DocumentCache): Promise<Answer> {
  const { name, url, reason, entry } = route;
  if (!url) return { status: 503, body: { detail: `The route ${name} is ${reason ?? 'not configured'}.` } };
  const answer = ownDocument(entry) ?? servedDocument(await documents.get(url), entry);
  switch (answer.kind) {
    case 'document':
      return { status: 200, body: { ...answer.document, resource } };
    case 'none':
      return failed(`The upstream of ${name} serves no protected-resource document: it ${answer.reason}.`);
    case 'unreachable':
      return failed(
        `The protected-resource document of ${name} can't be had: its upstream ${answer.reason}.`,
      );
  }
}

const failed = (text: string): Answer => ({ status: 502, body: { detail: text } });
