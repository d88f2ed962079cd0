import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { add } from '../../../machines/gateway/key-limits.ts';
import type { ChangeOrigin, KeyAdmin } from '../keys/admin.ts';
import { warningsOf } from '../keys/request.ts';
import { budgetOf, keyFields, keyInfo, pageOfKeys, serverId } from '../keys/view.ts';
import { bearerIn, type KeyDirectory, keyId } from '../keys/virtual-keys.ts';
import { hasIssuedTokens } from '../routes/entry.ts';
import type { RouteTable, ServedRoutes } from '../routes/route.ts';
import {
  type RestServices,
  recordRefusal,
  refusal,
  restCaller,
  restErrorOf,
  sendError,
  watchLetIn,
} from './rest.ts';

/** What the REST paths use. */
interface AdminServices extends RestServices {
  readonly admin: KeyAdmin;
  readonly keys: KeyDirectory;
  readonly clock: Clock;
  readonly routes: ServedRoutes;
  /** @param host the request's `Host` @returns the base that clients see, without a slash at its end */
  readonly publicUrl: (host: string | undefined) => string;
}

type Handler = (request: FastifyRequest, gateway: AdminServices) => unknown;

/**
 * The REST paths of the gateway (G14, G15): keys, budgets, and the list of servers, for the holder of the master key; a
 * key may read about itself.
 */
export function adminEndpoints(http: HttpSurface, gateway: AdminServices): void {
  http.register((scope, _options, registered) => {
    scope.setErrorHandler((error: FastifyError, _request, reply) => {
      if (isCoded(error)) return sendError(reply, restErrorOf(error));
      const { statusCode: status = 500 } = error;
      if (status >= 500) throw error; // the surface logs it, and tells nothing of it
      return sendError(reply, { status, message: UNREADABLE[status] ?? 'The request is not valid.' });
    });
    const route = (method: 'GET' | 'POST', url: string, handle: Handler) =>
      scope.route({
        method,
        url,
        config: { recordsSender: true },
        onRequest: (request, reply) => onlyMaster(request, reply, gateway), // before a body is read
        handler: (request) => handle(request, gateway),
      });

    route('POST', '/key/generate', async (request, { admin }) => {
      const { value, view } = await admin.generate(request.body, originOf(request));
      return { key: value, ...keyFields(view), ...warned(request.body) };
    });
    route('POST', '/key/update', async (request, { admin }) => ({
      ...keyFields(await admin.update(request.body, originOf(request))),
      ...warned(request.body),
    }));
    route('POST', '/key/block', async (request, { admin }) =>
      keyFields(await admin.block(request.body, true, originOf(request))),
    );
    route('POST', '/key/unblock', async (request, { admin }) =>
      keyFields(await admin.block(request.body, false, originOf(request))),
    );
    route('POST', '/key/delete', async (request, { admin }) => {
      return { deleted_keys: await admin.revoke(request.body, originOf(request)) };
    });
    // Other gateways call it regenerate; both take the same.
    for (const path of ['/key/rotate', '/key/regenerate']) {
      route('POST', path, async (request, { admin }) => {
        const { value, view } = await admin.rotate(request.body, originOf(request));
        return { key: value, ...keyFields(view) };
      });
    }
    route('GET', '/key/list', ({ query }, gateway) => {
      const { rows, ...page } = pageOfKeys(query, gateway.keys);
      return { keys: rows.map((key) => keyInfo(key, gateway.clock.now())), ...page };
    });
    route('GET', '/budget/list', ({ query }, gateway) => {
      const { rows, ...page } = pageOfKeys(query, gateway.keys);
      return {
        budgets: rows.map((key) => budgetOf(key, gateway.clock.now())),
        ...page,
        spend_by_user_id: spendBy(gateway, 'owner'),
        spend_by_key_alias: spendBy(gateway, 'alias'),
      };
    });
    route('GET', '/v1/mcp/server', ({ headers }, gateway) =>
      serverEntries(gateway.routes.table, gateway.publicUrl(headers.host)),
    );
    scope.route({
      method: 'GET',
      url: '/key/info',
      handler: (request, reply) => ownInfo(request, reply, gateway),
    });
    registered();
  });
}

/** What of a request was not followed, beside the answer to it. */
function warned(body: unknown): { readonly warnings?: readonly string[] } {
  const warnings = warningsOf(body);
  return warnings.length > 0 ? { warnings } : {};
}

/** The holder of the master key has no name here: the fingerprint tells which value was presented (`onlyMaster` let it in). */
function originOf({ id, headers }: FastifyRequest): ChangeOrigin {
  return { correlation: id, by: `master key ${keyId(bearerIn(headers.authorization ?? '') ?? '')}` };
}

const UNREADABLE: Readonly<Record<number, string>> = {
  413: 'The body is too large.',
  415: 'The body is JSON: send it with content-type: application/json.',
};

async function onlyMaster(
  request: FastifyRequest,
  reply: FastifyReply,
  gateway: AdminServices,
): Promise<unknown> {
  const caller = restCaller(request, gateway);
  if ('rule' in caller) return rejectCaller(request, reply, gateway, caller);
  if (caller.kind !== 'master') return rejectCaller(request, reply, gateway, { rule: 'master_key_wanted' });
  watchLetIn(gateway, request, reply);
  return undefined;
}

/** `GET /key/info`: a key reads itself. */
async function ownInfo(
  request: FastifyRequest,
  reply: FastifyReply,
  gateway: AdminServices,
): Promise<unknown> {
  const caller = restCaller(request, gateway);
  if ('rule' in caller) return rejectCaller(request, reply, gateway, caller);
  if (caller.kind === 'master') return rejectCaller(request, reply, gateway, { rule: 'virtual_key_wanted' });
  watchLetIn(gateway, request, reply);
  const { status, body } = await gateway.admin.read(caller.id, caller.presented, request.id);
  const view = gateway.keys.get(caller.id);
  if (status === 200 && view) return { key: caller.id, info: keyInfo(view, gateway.clock.now()) };
  const { rule = 'unknown_key', retryAfterMs } = body;
  if (status !== 429) return sendError(reply, refusal(rule));
  const { spend = 0, terms } = view?.context ?? {};
  const message =
    rule === 'rate_limited'
      ? `Rate limit of this key exceeded: ${terms?.rpmLimit} calls a minute.`
      : `Budget of this key exceeded: ${spend} of ${terms?.maxBudget} spent. Ask its owner to raise max_budget.`;
  return sendError(reply, { status, message, retryAfterMs });
}

async function rejectCaller(
  request: FastifyRequest,
  reply: FastifyReply,
  gateway: AdminServices,
  { rule }: Extract<ReturnType<typeof restCaller>, { rule: string }>,
): Promise<unknown> {
  return sendError(reply, refusal(await recordRefusal(gateway, request, rule)));
}

/** Sums of what keys spent, to whom they are attributed (G16). */
function spendBy({ keys }: Pick<AdminServices, 'keys'>, term: 'owner' | 'alias'): Record<string, number> {
  const sums = new Map<string, number>();
  for (const { context } of keys.list()) {
    const name = context.terms?.[term];
    if (name !== undefined) sums.set(name, add(sums.get(name) ?? 0, context.spend));
  }
  return Object.fromEntries(sums);
}

/**
 * The servers behind the gateway, as clients and operators may know them (G15). An upstream's own address is not among
 * it: its query may hold a secret.
 *
 * @param publicUrl the gateway's base
 */
function serverEntries({ routes, rejected }: RouteTable, publicUrl: string): unknown[] {
  return [
    ...[...routes.values()].map(({ name, entry, needsIdentity, reason }) => ({
      server_id: serverId(name),
      server_name: name,
      url: `${publicUrl}/${name}/mcp`,
      transport: 'http',
      auth_type:
        entry.disposition === 'overwrite' ? 'bearer_token' : hasIssuedTokens(entry) ? 'oauth2' : 'none',
      oauth_passthrough: entry.disposition === 'relay',
      extra_headers: needsIdentity ? ['Authorization'] : [],
      status: reason === undefined ? 'configured' : 'not configured',
      ...(reason !== undefined && { reason }),
      ...(entry.tools && { allowed_tools: entry.tools }),
    })),
    ...rejected.map(({ name, reason }) => ({
      server_id: null,
      server_name: name,
      oauth_passthrough: false,
      status: 'rejected',
      reason,
    })),
  ];
}
