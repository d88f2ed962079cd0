import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { type Answer, notFound } from '../mcp/answers.ts';
import type { Route, ServedRoutes } from '../routes/route.ts';
import { type DocumentCache, servedDocument } from './document-cache.ts';

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

/** `GET /.well-known/oauth-protected-resource/<server>/mcp` (G13). */
export function discoveryRoutes(
  http: HttpSurface,
  { routes, publicUrl, documents }: DiscoveryServices,
): void {
  http.get('/.well-known/oauth-protected-resource/:server/mcp', async (request, reply) => {
    const { server } = request.params as { server: string };
    const route = routes.table.routes.get(server);
    // The same answer for an unknown server and for one without OAuth, so that nobody learns which servers exist.
    const { status, body } =
      route?.entry.disposition === 'relay'
        ? await answerOf(route, `${publicUrl(request.headers.host)}/${server}/mcp`, documents)
        : notFound;
    return reply.code(status).send(body);
  });
}

async function answerOf(route: Route, resource: string, documents: DocumentCache): Promise<Answer> {
  const { name, url, reason, entry } = route;
  if (!url) return { status: 503, body: { detail: `The route ${name} is ${reason ?? 'not configured'}.` } };
  const answer = servedDocument(await documents.get(url), entry);
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
