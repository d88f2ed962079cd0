import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HistoryEntry } from '../../../core/contracts/config-store.ts';
import type { HttpSurface, SurfaceError } from '../../../core/host/http/contract.ts';
import type { Reply } from '../../../core/host/http/pending-replies.ts';
import { PAGE, redact } from '../../../core/host/logging/redact.ts';
import { CONFIG_KEY, configActor } from './config-actor.ts';
import type { ConfigWrites, Writer } from './config-writes.ts';
import type { RouterAccess } from './embedded-router.ts';
import { checkIgnoredBody, readEncodedBody } from './http-body.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
const HISTORY_SHOWN = 100;
const HISTORY_MOST = 1_000;

/** The router's own shape of an error answer, with our code beside it. */
export function routerErrorBody({ what, code }: SurfaceError): { errors: string[]; code: string } {
  return { errors: [what], code };
}

/** The router's API. Per-interface writes, PATCH and merge do not exist. */
export function routerRoutes(
  surface: HttpSurface,
  { router, writes, services: { actors } }: RouterAccess & { readonly writes: ConfigWrites },
): void {
  surface.addHook('preParsing', readEncodedBody);

  // The config is served as it is stored, secrets included: that is the contract of this endpoint.
  surface.get('/v1/config/active', async (_request, reply) => {
    const { body } = await router.active();
    return reply.type(JSON_TYPE).send(body);
  });

  surface.post('/v1/config/set', async (request, reply) =>
    answer(reply, await writes.set(request.body, writerOf(request))),
  );

  surface.register((scope, _options, registered) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
      checkIgnoredBody(request, body as Buffer);
      done(null, undefined);
    });
    scope.post('/v1/config/apply_current_config', async (request, reply) =>
      answer(reply, await writes.applyCurrent(writerOf(request))),
    );
    registered();
  });

  surface.get<{ Querystring: { limit?: string; first?: string } }>('/v1/config/history', async (request) => {
    const { limit, first } = request.query;
    const wanted = /^\d+$/.test(limit ?? '') ? Number(limit) : HISTORY_SHOWN;
    const entries = await router.history(Math.min(wanted, HISTORY_MOST));
    // Nobody wrote the config before the first write, so it is listed only on request.
    const listed = markPending(entries, actors.get(configActor, CONFIG_KEY)?.context.pending?.previous.ncid);
    return { entries: listed.filter(({ op }) => op !== 'seed' || first === 'true') };
  });

  for (const path of ['/v1/config/interfaces/:intf', '/v1/interface/:intf']) {
    surface.get<{ Params: { intf: string } }>(path, async ({ params: { intf } }) => {
      // A single interface is never posted back, so its secrets are not needed.
      return redact(await router.interface(intf), PAGE);
    });
  }
}

/** Marks the appends that are newer than the config that a revert would restore. Entries are newest first. */
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
