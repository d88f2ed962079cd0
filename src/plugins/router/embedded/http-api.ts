import type { FastifyReply, FastifyRequest } from 'fastify';
import type { HistoryEntry } from '../../../core/contracts/config-store.ts';
import { sourceOf } from '../../../core/host/http/addresses.ts';
import type { HttpSurface, SurfaceError } from '../../../core/host/http/contract.ts';
import type { Reply } from '../../../core/host/http/pending-replies.ts';
import { PAGE, redact } from '../../../core/host/logging/redact.ts';
import { interfaceOf } from '../config/network-config.ts';
import { RouterError } from '../errors.ts';
import { fenceFrom } from '../fence.ts';
import { CONFIG_KEY, configActor } from './config-actor.ts';
import type { ConfigWrites, Writer } from './config-writes.ts';
import type { EmbeddedRouter, RouterAccess } from './embedded-router.ts';
import { checkIgnoredBody, readEncodedBody } from './http-body.ts';
import { interfaceView, interfaceViews, wanConnectivity } from './interface-view.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
/** Its answer holds secrets of the config: with `secretsNeedToken` it is for callers with the token alone. */
const SECRET = { config: { credential: 'secret' } } as const;
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
  surface.get('/v1/config/active', SECRET, async (_request, reply) => {
    const { body } = await router.served();
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
    const writesAs = {
      types: ['application/json', 'application/x-www-form-urlencoded'],
      because: 'the body is ignored, and `curl -d` without a header sends a form, as to the real daemon',
    };
    scope.post('/v1/config/apply_current_config', { config: { writes: writesAs } }, async (request, reply) =>
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

  surface.get<{ Params: { intf: string } }>('/v1/interface/:intf', async ({ params: { intf } }) => {
    // A single interface is never posted back, so its secrets are not needed.
    return redact(await router.interface(intf), PAGE);
  });
  readRoutes(surface, router);
}

/**
 * What the main daemon of a router reads, in the shape of the router's daemon. The entries of the config are served with
 * their secrets, as `/v1/config/active` serves them.
 */
function readRoutes(surface: HttpSurface, router: EmbeddedRouter): void {
  const views = (role?: 'wan' | 'lan') => async () => {
    const { config, observed } = await router.observe();
    return interfaceViews(config, observed, role);
  };
  surface.get('/v1/config/wans', SECRET, views('wan'));
  surface.get('/v1/config/lans', SECRET, views('lan'));
  surface.get('/v1/config/interfaces', SECRET, views());
  surface.get<{ Params: { intf: string } }>(
    '/v1/config/interfaces/:intf',
    SECRET,
    async ({ params: { intf } }) => {
      const { config, observed } = await router.observe();
      const entry = interfaceOf(config, intf);
      if (!entry) throw new RouterError('HF_ROUTER_INTERFACE_UNKNOWN', { intf });
      return interfaceView(config, entry, observed);
    },
  );
  surface.get('/v1/config/wan/connectivity', async (_request, reply) => {
    const { config, observed } = await router.observe();
    return reply.type(JSON_TYPE).send(JSON.stringify(wanConnectivity(config, observed)));
  });
  surface.get('/v1/config/phy_interfaces', async () => ({ intfs: await router.hardware() }));
  surface.get('/v1/config/phy_interfaces/state/simple', async () => {
    const [names, { config, observed }] = await Promise.all([router.hardware(), router.observe()]);
    const carrierOf = (name: string) =>
      interfaceOf(config, name) && observed.states.get(name)?.link.carrier === '1' ? 1 : 0;
    return Object.fromEntries(names.map((name) => [name, { carrier: carrierOf(name) }]));
  });
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
  const from = sourceOf(request);
  const who = client ? `${from} ${client}` : from;
  const fence = fenceFrom(request.headers);
  return { request: request.id, correlation: request.id, who, fence };
}

function answer(reply: FastifyReply, { status, body, headers = {} }: Reply): FastifyReply {
  return reply.code(status).headers(headers).send(body);
}
