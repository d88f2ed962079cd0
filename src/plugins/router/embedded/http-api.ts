import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HistoryEntry } from '../../../core/contracts/config-store.ts';
import type { HttpSurface, SurfaceError } from '../../../core/host/http/contract.ts';
import type { Reply } from '../../../core/host/http/exchanges.ts';
import { PAGE, redact } from '../../../core/host/logging/redact.ts';
import type { Pending } from '../../../machines/router/config-shapes.ts';
import type { ConfigWrites, Writer } from './config-writes.ts';
import type { EmbeddedRouter } from './embedded-router.ts';

/** What the routes stand on; there once the plugin has started. */
export interface RouterParts {
  readonly router: EmbeddedRouter;
  readonly writes: ConfigWrites;
  /** The transaction that is neither committed nor reverted. */
  readonly pending: () => Pending | undefined;
  /** Resolves once what was published on the channels has left the process. */
  readonly published: () => Promise<void>;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const HISTORY_SHOWN = 100;
const HISTORY_MOST = 1_000;

/** The router's own shape of an error answer, with our code beside it. */
export function routerErrorBody({ what, code }: SurfaceError): { errors: string[]; code: string } {
  return { errors: [what], code };
}

/** The router's API. Per-interface writes, PATCH and merge do not exist. */
export function routerRoutes(surface: HttpSurface, parts: () => RouterParts): void {
  // The config is served as it is stored, secrets included: that is the contract of this endpoint.
  surface.get('/v1/config/active', async (_request, reply) => {
    const { body } = await parts().router.active();
    return reply.type(JSON_TYPE).send(body);
  });

  surface.post('/v1/config/set', async (request, reply) =>
    answer(reply, await parts().writes.set(request.body, writerOf(request))),
  );

  surface.register((scope, _options, registered) => {
    // Clients send an empty body, `{}`, or a form without fields: whatever it is, it is not read.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, _body, done) => done(null, undefined));
    scope.post('/v1/config/apply_current_config', async (request, reply) =>
      answer(reply, await parts().writes.applyCurrent(writerOf(request))),
    );
    registered();
  });

  surface.get('/v1/config/history', async (request) => {
    const { limit, first } = request.query as { limit?: string; first?: string };
    const wanted = /^\d+$/.test(limit ?? '') ? Number(limit) : HISTORY_SHOWN;
    const entries = await parts().router.history(Math.min(wanted, HISTORY_MOST));
    // What was there before the first write is nobody's write: it is listed for who asks.
    const listed = markPending(entries, parts().pending()?.previous.ncid);
    return { entries: listed.filter(({ op }) => op !== 'seed' || first === 'true') };
  });

  for (const path of ['/v1/config/interfaces/:intf', '/v1/interface/:intf']) {
    surface.get(path, async (request) => {
      const { intf } = request.params as { intf: string };
      // Nobody posts a single interface back, so nobody needs its secrets.
      return redact(await parts().router.interface(intf), PAGE);
    });
  }
}

/** Newest first: what is newer than the config that a revert restores is not kept yet. */
function markPending(
  entries: readonly HistoryEntry[],
  previous: string | undefined,
): readonly (HistoryEntry & { readonly pending?: true })[] {
  const kept = previous === undefined ? 0 : entries.findIndex(({ ncid }) => ncid === previous);
  const isPending = (index: number, op: string) =>
    (kept === -1 ? index === 0 : index < kept) && op === 'append';
  return entries.map((entry, index) => (isPending(index, entry.op) ? { ...entry, pending: true } : entry));
}

function writerOf(request: FastifyRequest): Writer {
  // A client's name without the comments behind it, which may hold anything.
  const [client = ''] = /^[\w.\-/]{1,40}/.exec(request.headers['user-agent'] ?? '') ?? [];
  const who = client ? `${request.ip} ${client}` : request.ip;
  return { request: request.id, correlation: request.id, who };
}

function answer(reply: FastifyReply, { status, body, headers = {} }: Reply): FastifyReply {
  return reply.code(status).headers(headers).send(body);
}
