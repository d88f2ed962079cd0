import type { McpServerFactory } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { COLUMNAR_WRITES } from '../../../core/contracts/calls.ts';
import { insecureOption } from '../../../core/host/http/plaintext.ts';
import { secretReference } from '../../../core/host/secrets/secret-reference.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { RouteKind } from './kind.ts';
import { commandSchema, openapiSchema } from './upstream-entry.ts';

/** Where the credential for the upstream comes from. On a `custom` route its kind decides. */
export type Disposition =
  | 'overwrite'
  | 'relay'
  | 'credential_free'
  | 'client_credentials'
  | 'token_exchange'
  | 'custom';

const name = z
  .string()
  .max(64)
  .regex(
    /^[a-z][a-z0-9_]*$/,
    'a server name has small letters, digits and underscores; write _ instead of -',
  );
/** A `scope-token` (RFC 6749). */
const scope = z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/, 'a scope has no spaces and no quotes');
const toolName = z.string().min(1).max(128);
const approval = z.enum(['none', 'ask']);
const httpUrl = z.url({ protocol: /^https?$/ });
const callbackPort = z.int().min(1).max(65_535);

/** One tool as the operator wants clients to see it. */
const toolSettings = z.strictObject({
  /** In place of the upstream's name, without the prefix. */
  name: toolName.regex(/^[\w./-]+$/, 'a tool name has letters, digits, _, -, . and /').optional(),
  /** In place of the upstream's text. */
  description: z.string().min(1).max(8_192).optional(),
  /** Clients neither see nor call it. */
  hidden: z.boolean().optional(),
  /** Arguments that clients do not see: each call has these values. */
  fixed: z.record(z.string().min(1).max(128), z.json()).optional(),
  /** Arguments that a call without them gets. */
  defaults: z.record(z.string().min(1).max(128), z.json()).optional(),
  /** Whether a person must approve each call; as the route says unless set. */
  approval: approval.optional(),
});
export type ToolSettings = z.output<typeof toolSettings>;

const common = {
  name,
  /** The upstream's MCP endpoint; `HOLDFAST_MCP_<SERVER>_URL` unless set here. */
  url: httpUrl.optional(),
  /** The official SDK's server, which runs in this process. Plugins bring it: the file holds no functions that a rollback could find. */
  server: z.custom<McpServerFactory>((value) => typeof value === 'function').optional(),
  /** The `server` is loaded with the first call of a client: until then it is not probed, and its health is unknown. */
  onDemand: z.boolean().optional(),
  /** A program that speaks MCP on its standard input and output, in place of a URL. */
  command: commandSchema.optional(),
  /** An HTTP API whose OpenAPI document makes the tools, in place of a URL. Those that write need `writes: true`. */
  openapi: openapiSchema.optional(),
  /** Whether tool names get the server's name as a prefix. */
  prefix: z.boolean().default(true),
  /** The tools it offers, by the upstream's own names; all when absent. */
  tools: z.array(toolName).max(1_000).optional(),
  /**
   * What happens when the upstream changes the definitions of its tools: `follow` records and tells it; with `ask` the changed
   * and new ones, with `block` all are withheld until a person accepts them. An identity route is not probed, so it follows.
   */
  pin: z.enum(['follow', 'ask', 'block']).default('follow'),
  /** With `ask`, each call of a tool waits until a person approves it; `toolSettings` may say otherwise of single tools. */
  approval: approval.default('none'),
  /** What is changed of single tools, by the upstream's own names. */
  toolSettings: z.record(toolName, toolSettings).default({}),
  /** Cost of a call by the upstream's own name of the tool; `*` stands for all other tools. */
  costs: z.record(toolName, z.number().min(0)).default({}),
  /** Its calls may change state: each decision is durable before the call is forwarded. Those of `columnar_rw` always are. */
  writes: z.boolean().default(false),
  /** `gen_ai.request.model` of its calls in telemetry; `<server>/<tool>` unless set. */
  model: z.string().min(1).max(128).optional(),
  /**
   * Longest wait for the beginning of an answer, and longest pause within a JSON answer, milliseconds. Streams have no
   * limit.
   */
  timeoutMs: z.int().min(100).max(3_600_000).default(120_000),
  /**
   * A session that the upstream has lost, e.g. because it was restarted, is begun again behind the client's, which does not
   * notice: for servers that keep nothing of importance in a session. Unless set, the client gets 404 and begins another.
   */
  reinitialise: z.boolean().optional(),
  /** Its credential may go to another machine over `http://`; `HOLDFAST_MCP_<SERVER>_INSECURE` unless set here. */
  insecure: insecureOption,
};

/** Source of the upstream's token; `HOLDFAST_MCP_<SERVER>_TOKEN_FILE` or `_TOKEN` unless set here. */
const token = {
  /** File (mode 0600) with the bare token. */
  tokenFile: z.string().min(1).optional(),
  /** Place in the secrets store, `<path>#<property>`. */
  secret: secretReference.optional(),
};

/** The authorization server that issues the gateway's tokens for the upstream, and what they are for. */
const issued = {
  /** Issuer whose metadata name the token endpoint (RFC 8414 or OpenID Connect Discovery). */
  issuer: httpUrl.optional(),
  /** The token endpoint, for an authorization server without metadata. */
  tokenEndpoint: httpUrl.optional(),
  /** The gateway's own client at that server. */
  clientId: z
    .string()
    .max(1_024)
    .regex(/^[\x20-\x7e]+$/, 'a client id has visible ASCII characters only'),
  clientAuthentication: z.enum(['client_secret_basic', 'client_secret_post']).default('client_secret_basic'),
  /** File (mode 0600) with the client's secret; `HOLDFAST_MCP_<SERVER>_CLIENT_SECRET_FILE` or `_CLIENT_SECRET` unless set here. */
  secretFile: z.string().min(1).optional(),
  /** Its place in the secrets store, `<path>#<property>`. */
  secret: secretReference.optional(),
  /** `audience` of the request for a token. */
  audience: z.string().min(1).max(2_048).optional(),
  /** `resource` of that request (RFC 8707). */
  resource: httpUrl.optional(),
  /** `scope` of that request. */
  scopes: z.array(scope).max(100).default([]),
};

export const routeSchema = z
  .discriminatedUnion('disposition', [
    z.strictObject({ ...common, ...token, disposition: z.literal('overwrite') }),
    z.strictObject({
      ...common,
      disposition: z.literal('relay'),
      /**
       * The `aud` that the upstream expects in a token, for `holdfast gateway doctor`; `{gateway_url}` is replaced. Where the
       * server is on this machine, the gateway itself takes tokens for this audience alone.
       */
      audience: z.string().min(1).optional(),
      /** Port of the client's login callback. */
      callbackPort: callbackPort.optional(),
      /** Scopes a client asks for when it can't register itself. */
      scopes: z.array(scope).optional(),
      /** The gateway's challenge names `scopes`, for an upstream that names them in its own challenge only. */
      scopesInChallenge: z.boolean().optional(),
      /**
       * For an upstream without a protected-resource document: the gateway makes one of these and `scopes`. Where the server is
       * on this machine, the gateway itself takes tokens of these issuers alone.
       */
      authorizationServers: z.array(httpUrl).min(1).max(16).optional(),
      /** `jsonrpc` turns an upstream's 401 and 403 into a JSON-RPC error in a 200. */
      relayErrors: z.enum(['status', 'jsonrpc']).default('status'),
    }),
    z.strictObject({ ...common, disposition: z.literal('credential_free') }),
    z.strictObject({ ...common, ...issued, disposition: z.literal('client_credentials') }),
    z.strictObject({
      ...common,
      ...issued,
      disposition: z.literal('token_exchange'),
      /** What the callers' own tokens are (RFC 8693, 3). */
      subjectTokenType: z.enum(['access_token', 'id_token', 'jwt']).default('access_token'),
      /** Where clients log in, for the document that the gateway serves; the issuer unless set. */
      authorizationServers: z.array(httpUrl).min(1).max(16).optional(),
      /** Scopes that a client asks for at its login. */
      loginScopes: z.array(scope).max(100).optional(),
      /** Port of the client's login callback. */
      callbackPort: callbackPort.optional(),
    }),
    z.strictObject({
      ...common,
      ...token,
      disposition: z.literal('custom'),
      kind: z.custom<RouteKind>(isKind, 'it must be made with defineRouteKind'),
      options: z.record(z.string(), z.unknown()).default({}),
    }),
  ])
  .overwrite((entry) => (entry.name === COLUMNAR_WRITES ? { ...entry, writes: true } : entry));

export type RouteEntry = z.output<typeof routeSchema>;
/** A route as `plugins.config.ts` writes it. It is checked when the table is loaded. */
export type RouteInput = z.input<typeof routeSchema>;
/** An entry whose tokens an authorization server issues. */
export type IssuedEntry = Extract<RouteEntry, { disposition: 'client_credentials' | 'token_exchange' }>;
type Input<D extends Disposition> = Omit<Extract<RouteInput, { disposition: D }>, 'disposition'>;

/**
 * A route whose upstream credential the gateway holds: it composes `Authorization` itself (G7).
 *
 * @example overwrite({ name: 'library_docs' })
 * @experimental
 */
export const overwrite = (input: Input<'overwrite'>): RouteInput => ({ ...input, disposition: 'overwrite' });

/**
 * A route that forwards the caller's own token, which the upstream validates (G8).
 *
 * @example relay({ name: 'memory', audience: 'mcp-public', callbackPort: 51338 })
 * @experimental
 */
export const relay = (input: Input<'relay'>): RouteInput => ({ ...input, disposition: 'relay' });

/**
 * A route without any credential (G9).
 *
 * @example credentialFree({ name: 'repo_wiki' })
 * @experimental
 */
export const credentialFree = (input: Input<'credential_free'>): RouteInput => ({
  ...input,
  disposition: 'credential_free',
});

/**
 * A route whose tokens the gateway gets for itself from an authorization server (OAuth 2.0 client credentials).
 *
 * @example clientCredentials({ name: 'tickets', issuer: 'https://login.example.net', clientId: 'holdfast', secret: 'mcp/tickets#secret' })
 * @experimental
 */
export const clientCredentials = (input: Input<'client_credentials'>): RouteInput => ({
  ...input,
  disposition: 'client_credentials',
});

/**
 * A route where the gateway exchanges the caller's own token for one that is for the upstream (RFC 8693).
 *
 * @example tokenExchange({ name: 'crm', issuer: 'https://login.example.net', clientId: 'holdfast', secret: 'mcp/crm#secret', audience: 'crm' })
 * @experimental
 */
export const tokenExchange = (input: Input<'token_exchange'>): RouteInput => ({
  ...input,
  disposition: 'token_exchange',
});

/** @returns whether an authorization server issues the tokens for its upstream */
export const hasIssuedTokens = (entry: RouteEntry): entry is IssuedEntry =>
  entry.disposition === 'client_credentials' || entry.disposition === 'token_exchange';

/** @returns whether its callers need an identity token of their own */
export const needsIdentity = ({ disposition }: { readonly disposition: Disposition }): boolean =>
  disposition === 'relay' || disposition === 'token_exchange';

/** What a client's entry needs for the login at an identity route. */
export interface LoginSettings {
  readonly audience?: string | undefined;
  readonly callbackPort?: number | undefined;
  readonly scopes?: readonly string[] | undefined;
}

/** @returns what clients need for their login; undefined of a route that wants none */
export function loginOf(entry: RouteEntry): LoginSettings | undefined {
  const { disposition } = entry;
  if (disposition === 'relay')
    return { audience: entry.audience, callbackPort: entry.callbackPort, scopes: entry.scopes };
  if (disposition === 'token_exchange')
    return { callbackPort: entry.callbackPort, scopes: entry.loginScopes };
  return undefined;
}

function isKind(value: unknown): boolean {
  return isObject(value) && typeof value.name === 'string' && typeof value.headers === 'function';
}
