import { z } from 'zod';
import type { RouteKind } from '../../../core/contracts/mcp-route-kind.ts';
import { secretReference } from '../../../core/contracts/secrets-store.ts';
import { isObject } from '../../../core/kernel/json.ts';

/** What the gateway does about `Authorization` on a route; `custom` is for the route's kind to say. */
export type Disposition = 'overwrite' | 'relay' | 'credential_free' | 'custom';

const name = z
  .string()
  .max(64)
  .regex(
    /^[a-z][a-z0-9_]*$/,
    'a server name has small letters, digits and underscores; write _ instead of -',
  );
/** A `scope-token` of RFC 6749. */
const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'a scope has no spaces and no quotes');
const toolName = z.string().min(1).max(128);

const common = {
  name,
  /** The upstream's MCP endpoint; `HOLDFAST_MCP_<SERVER>_URL` unless set here. */
  url: z.url({ protocol: /^https?$/ }).optional(),
  /** Whether tool names bear the server's name in front. */
  prefix: z.boolean().default(true),
  /** The only tools it offers, by the upstream's own names; all when absent. */
  tools: z.array(toolName).max(1_000).optional(),
  /** What a call of a tool costs, by the upstream's own names; `*` stands for the others. */
  costs: z.record(toolName, z.number().min(0)).default({}),
  /** The route may change state: what is decided about it is durable before it counts. */
  writes: z.boolean().default(false),
  /** `gen_ai.request.model` of its calls in telemetry; `<server>/<tool>` unless set. */
  model: z.string().min(1).max(128).optional(),
  /**
   * How long the upstream may take to begin an answer, and to go on in the middle of its JSON, milliseconds. Streams
   * may last as long as they like.
   */
  timeoutMs: z.int().min(100).max(3_600_000).default(120_000),
};

/** Where the upstream's token is; `HOLDFAST_MCP_<SERVER>_TOKEN_FILE` or `_TOKEN` unless set here. */
const token = {
  /** File (mode 0600) with the bare token. */
  tokenFile: z.string().min(1).optional(),
  /** In the secrets store, `<path>#<property>`. */
  secret: secretReference.optional(),
};

export const routeSchema = z.discriminatedUnion('disposition', [
  z.strictObject({ ...common, ...token, disposition: z.literal('overwrite') }),
  z.strictObject({
    ...common,
    disposition: z.literal('relay'),
    /** What the upstream wants in a token's `aud`, for `holdfast gateway doctor`; `{gateway_url}` is filled in. */
    audience: z.string().min(1).optional(),
    /** Port on which a client's login comes back. */
    callbackPort: z.int().min(1).max(65_535).optional(),
    /** Scopes a client asks for when it can't register itself. */
    scopes: z.array(scope).optional(),
    /** Our challenge names `scopes`: for an upstream that says in its own challenge alone which it wants. */
    scopesInChallenge: z.boolean().optional(),
    /** Where clients log in for an upstream that serves no protected-resource document: we make it, with `scopes`. */
    authorizationServers: z
      .array(z.url({ protocol: /^https?$/ }))
      .min(1)
      .max(16)
      .optional(),
    /** `jsonrpc` turns an upstream's 401 and 403 into a JSON-RPC error in a 200. */
    relayErrors: z.enum(['status', 'jsonrpc']).default('status'),
  }),
  z.strictObject({ ...common, disposition: z.literal('credential_free') }),
  z.strictObject({
    ...common,
    ...token,
    disposition: z.literal('custom'),
    kind: z.custom<RouteKind>(isKind, 'it must be made with defineRouteKind'),
    options: z.unknown(),
  }),
]);

export type RouteEntry = z.output<typeof routeSchema>;
/** A route as `plugins.config.ts` writes it; checked when the table is loaded, each for itself. */
export type RouteInput = z.input<typeof routeSchema>;
type Input<D extends Disposition> = Omit<Extract<RouteInput, { disposition: D }>, 'disposition'>;

/**
 * A route whose upstream credential the gateway holds: it composes `Authorization` itself (G7).
 *
 * @example overwrite({ name: 'library_docs' })
 */
export const overwrite = (input: Input<'overwrite'>): RouteInput => ({ ...input, disposition: 'overwrite' });

/**
 * A route that passes on the caller's own token, which the upstream validates (G8).
 *
 * @example relay({ name: 'memory', audience: 'mcp-public', callbackPort: 51338 })
 */
export const relay = (input: Input<'relay'>): RouteInput => ({ ...input, disposition: 'relay' });

/**
 * A route that neither holds a credential nor passes one on (G9).
 *
 * @example credentialFree({ name: 'repo_wiki' })
 */
export const credentialFree = (input: Input<'credential_free'>): RouteInput => ({
  ...input,
  disposition: 'credential_free',
});

function isKind(value: unknown): boolean {
  return isObject(value) && typeof value.name === 'string' && typeof value.headers === 'function';
}
