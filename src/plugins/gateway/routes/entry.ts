import type { McpServerFactory } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { COLUMNAR_WRITES } from '../../../core/contracts/calls.ts';
import type { McpRoute } from '../../../core/contracts/mcp-routes.ts';
import type { Contributed } from '../../../core/contracts/token.ts';
import { problemsOf } from '../../../core/host/config/problem.ts';
import { insecureOption, plaintextProblem } from '../../../core/host/http/plaintext.ts';
import { secretReference } from '../../../core/host/secrets/secret-reference.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { RejectedEntry } from '../../../machines/gateway/routes.ts';
import type { RouteKind } from './kind.ts';

/** Where the credential for the upstream comes from. On a `custom` route its kind decides. */
export type Disposition = 'overwrite' | 'relay' | 'credential_free' | 'custom';

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
});
export type ToolSettings = z.output<typeof toolSettings>;

const variable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'a variable has letters, digits and underscores');

const commandSchema = z.strictObject({
  run: z.string().min(1).max(4_096),
  args: z.array(z.string().max(32_768)).max(256).default([]),
  env: z.record(variable, z.string().max(32_768)).default({}),
  secrets: z.record(variable, secretReference).default({}),
  cwd: z.string().min(1).max(4_096).optional(),
  maxProcesses: z.int().min(1).max(1_000).default(8),
  idleMs: z
    .int()
    .min(1_000)
    .max(86_400_000)
    .default(10 * 60_000),
  maxMemory: z
    .int()
    .min(16 * 1024 * 1024)
    .default(512 * 1024 * 1024),
});

const common = {
  name,
  /** The upstream's MCP endpoint; `HOLDFAST_MCP_<SERVER>_URL` unless set here. */
  url: z.url({ protocol: /^https?$/ }).optional(),
  /** The official SDK's server, which runs in this process. Plugins bring it: the file holds no functions that a rollback could find. */
  server: z.custom<McpServerFactory>((value) => typeof value === 'function').optional(),
  /** A program that speaks MCP on its standard input and output, in place of a URL. */
  command: commandSchema.optional(),
  /** Whether tool names get the server's name as a prefix. */
  prefix: z.boolean().default(true),
  /** The tools it offers, by the upstream's own names; all when absent. */
  tools: z.array(toolName).max(1_000).optional(),
  /**
   * What happens when the upstream changes the definitions of its tools: `follow` records and tells it; with `ask` the changed
   * and new ones, with `block` all are withheld until a person accepts them. An identity route is not probed, so it follows.
   */
  pin: z.enum(['follow', 'ask', 'block']).default('follow'),
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

export const routeSchema = z
  .discriminatedUnion('disposition', [
    z.strictObject({ ...common, ...token, disposition: z.literal('overwrite') }),
    z.strictObject({
      ...common,
      disposition: z.literal('relay'),
      /** The `aud` that the upstream expects in a token, for `holdfast gateway doctor`; `{gateway_url}` is replaced. */
      audience: z.string().min(1).optional(),
      /** Port of the client's login callback. */
      callbackPort: z.int().min(1).max(65_535).optional(),
      /** Scopes a client asks for when it can't register itself. */
      scopes: z.array(scope).optional(),
      /** The gateway's challenge names `scopes`, for an upstream that names them in its own challenge only. */
      scopesInChallenge: z.boolean().optional(),
      /** For an upstream without a protected-resource document: the gateway makes one of these and `scopes`. */
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
      options: z.record(z.string(), z.unknown()).default({}),
    }),
  ])
  .overwrite((entry) => (entry.name === COLUMNAR_WRITES ? { ...entry, writes: true } : entry));

export type RouteEntry = z.output<typeof routeSchema>;
/** A route as `plugins.config.ts` writes it. It is checked when the table is loaded. */
export type RouteInput = z.input<typeof routeSchema>;
type Input<D extends Disposition> = Omit<Extract<RouteInput, { disposition: D }>, 'disposition'>;

/**
 * A route whose upstream credential the gateway holds: it composes `Authorization` itself (G7).
 *
 * @example overwrite({ name: 'library_docs' })
 */
export const overwrite = (input: Input<'overwrite'>): RouteInput => ({ ...input, disposition: 'overwrite' });

/**
 * A route that forwards the caller's own token, which the upstream validates (G8).
 *
 * @example relay({ name: 'memory', audience: 'mcp-public', callbackPort: 51338 })
 */
export const relay = (input: Input<'relay'>): RouteInput => ({ ...input, disposition: 'relay' });

/**
 * A route without any credential (G9).
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

export type Environment = Readonly<Record<string, string | undefined>>;

/** A route's entry with what its environment variables add. It holds no token, but its URL may hold a secret. */
export interface RouteDefinition {
  readonly entry: RouteEntry;
  /** The upstream, query included; undefined when it is not configured. */
  readonly url: string | undefined;
  /** Where the token is: `file:<path>`, `env:<variable>` or `store:<path>#<property>`; undefined when none is named. */
  readonly secret: string | undefined;
  /** The plugin that brings it, and that plugin's options; undefined for an entry of the operator's. */
  readonly plugin?: Omit<Contributed<unknown>, 'value'>;
}

/** The prefix of a route's environment variables. */
export const variablesOf = (name: string): string => `HOLDFAST_MCP_${name.toUpperCase()}`;

export interface RouteEntries {
  readonly definitions: readonly RouteDefinition[];
  readonly rejected: readonly RejectedEntry[];
}

/**
 * Reads the entries of `plugins.config.ts`, and the routes that plugins bring. An invalid one is listed with its reason and
 * does not affect the others (G2). When several entries, or two plugins, have the same name, all of them are rejected. An
 * entry without an upstream overrides the settings of the plugin's route of its name; one with an upstream replaces it.
 */
export function readRouteEntries(
  inputs: readonly unknown[],
  env: Environment,
  contributed: readonly Contributed<McpRoute>[] = [],
): RouteEntries {
  const rejected: RejectedEntry[] = [];
  const definitions: RouteDefinition[] = [];
  const take = (name: string, definition: RouteDefinition | Refusal): void => {
    if ('reason' in definition) rejected.push(rejectedEntry(name, definition.reason));
    else definitions.push(definition);
  };
  const brought = Map.groupBy(contributed, ({ value }) => nameOf(value));
  const listed = Map.groupBy(inputs, nameOf);
  const own = inputs.map((input) => ({ name: nameOf(input), input, definition: definitionOf(input, env) }));
  for (const [name, entries] of Map.groupBy(own, ({ name }) => name)) {
    const valid = entries.filter(({ definition }) => !('reason' in definition));
    for (const { definition } of entries) if ('reason' in definition) take(name, definition);
    const [first, second] = valid;
    if (second) take(name, { reason: `${valid.length} entries have this name: keep one of them` });
    else if (first) take(name, withPlugin(first, brought.get(name), env));
  }
  for (const [name, plugins] of brought) if (!listed.has(name)) take(name, ofPlugins(plugins, env));
  return { definitions, rejected };
}

interface Refusal {
  readonly reason: string;
}

/** @returns an entry of the operator's, with the upstream of a plugin where it has none of its own */
function withPlugin(
  { input, definition }: { readonly input: unknown; readonly definition: RouteDefinition | Refusal },
  plugins: readonly Contributed<McpRoute>[] | undefined,
  env: Environment,
): RouteDefinition | Refusal {
  const isWhole = 'reason' in definition || hasUpstream(definition);
  return isWhole || !plugins ? definition : ofPlugins(plugins, env, input);
}

const hasUpstream = ({ url, entry }: RouteDefinition): boolean =>
  url !== undefined || entry.server !== undefined || entry.command !== undefined;

/** @param plugins that bring a route of one name @param entry of the operator's, whose settings count */
function ofPlugins(
  plugins: readonly Contributed<McpRoute>[],
  env: Environment,
  entry: unknown = {},
): RouteDefinition | Refusal {
  const [first, second] = plugins;
  if (!first) return { reason: 'no plugin brings it' };
  if (second)
    return { reason: `the plugins ${first.owner} and ${second.owner} both bring it: keep one of them` };
  const { owner, options, value } = first;
  const definition = definitionOf(
    withoutIdentity({ disposition: 'credential_free', ...value, ...(entry as object) }, env),
    env,
  );
  if ('reason' in definition) return { reason: `plugin ${owner}: ${definition.reason}` };
  return { ...definition, plugin: { owner, options } };
}

/**
 * A server on this machine checks no tokens, so that a relay entry without an upstream works with the key alone; one that
 * names an identity provider is refused by the schema, for it must not pass for a route that checks them.
 */
function withoutIdentity(input: Readonly<Record<string, unknown>>, env: Environment): unknown {
  const { audience, callbackPort, scopes, scopesInChallenge, relayErrors, ...others } = input;
  const hasUrl = input.url !== undefined || Boolean(env[`${variablesOf(String(input.name))}_URL`]);
  return input.disposition === 'relay' && !hasUrl ? { ...others, disposition: 'credential_free' } : input;
}

/** @param name as it was written */
export function rejectedEntry(name: string, reason: string): RejectedEntry {
  return { name, route: name.replaceAll('-', '_'), reason };
}

function definitionOf(input: unknown, env: Environment): RouteDefinition | Refusal {
  const parsed = routeSchema.safeParse(input);
  const [problem] = problemsOf(routeSchema, input, parsed.error?.issues ?? []);
  if (problem) return { reason: `${problem.option}: ${problem.reason}${problem.hint && `.${problem.hint}`}` };
  const checked = withOptions(parsed.data as RouteEntry);
  if ('reason' in checked) return checked;
  if (checked.disposition === 'relay' && checked.pin !== 'follow')
    return { reason: 'pin: the gateway has no credential of its own to look at the tools of a relay route' };
  const clash = sharedToolName(checked.toolSettings);
  if (clash !== undefined) return { reason: `toolSettings: ${clash}` };
  const { name, url: own } = checked;
  const [first, second] = (['url', 'server', 'command'] as const).filter(
    (field) => checked[field] !== undefined,
  );
  if (second) return { reason: `${second}: ${first} is set as well: keep one of the two` };
  const variables = variablesOf(name);
  const url = own ?? (env[`${variables}_URL`] || undefined);
  const from = own === undefined ? `${variables}_URL` : 'url';
  const entry = url === undefined ? checked : { ...checked, server: undefined, command: undefined };
  const invalidUrl = url === undefined ? undefined : urlProblem(url);
  if (invalidUrl !== undefined) return { reason: `${from}: ${invalidUrl}` };
  if ('secret' in entry && entry.secret !== undefined && entry.tokenFile !== undefined) {
    return { reason: 'secret: tokenFile is set as well: keep one of the two' };
  }
  const insecure = entry.insecure ?? /^(?:true|yes|on|1)$/i.test(env[`${variables}_INSECURE`] ?? '');
  const credential = sentBy(entry);
  const plaintext = credential === undefined ? undefined : plaintextProblem({ url, insecure, credential });
  if (plaintext !== undefined) return { reason: `insecure: ${plaintext}` };
  return { entry, url, secret: secretOf(entry, env, variables) };
}

/** Two tools of one name could not be told apart. @returns what is wrong */
function sharedToolName(settings: Readonly<Record<string, ToolSettings>>): string | undefined {
  const owners = new Map<string, string>();
  for (const [own, { name: shown = own }] of Object.entries(settings)) {
    const first = owners.get(shown);
    if (first !== undefined) return `${first} and ${own} would both be ${shown}`;
    owners.set(shown, own);
  }
  return undefined;
}

/** Checks the `options` of a custom entry against the schema of its kind. */
function withOptions(entry: RouteEntry): RouteEntry | Refusal {
  if (entry.disposition !== 'custom') return entry;
  const { kind, options } = entry;
  const parsed = kind.options.safeParse(options);
  const [problem] = problemsOf(kind.options, options, parsed.error?.issues ?? []);
  if (problem)
    return { reason: `options.${problem.option}: ${problem.reason}${problem.hint && `.${problem.hint}`}` };
  return { ...entry, options: parsed.data ?? {} };
}

function secretOf(entry: RouteEntry, env: Environment, variables: string): string | undefined {
  if (entry.disposition !== 'overwrite' && entry.disposition !== 'custom') return undefined;
  if (entry.secret !== undefined) return `store:${entry.secret}`;
  const file = entry.tokenFile ?? (env[`${variables}_TOKEN_FILE`] || undefined);
  if (file !== undefined) return `file:${file}`;
  return env[`${variables}_TOKEN`] ? `env:${variables}_TOKEN` : undefined;
}

/** What a route sends besides the call; a custom kind may set any header. */
function sentBy({ disposition }: RouteEntry): string | undefined {
  switch (disposition) {
    case 'overwrite':
      return 'its token';
    case 'relay':
      return "the callers' tokens";
    case 'custom':
      return 'its credential';
    case 'credential_free':
      return undefined;
  }
}

function urlProblem(address: string): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return 'it is not an http or https URL';
  const isBare = url.username === '' && url.password === '';
  return isBare ? undefined : 'it contains a user or password, which belong in the token file';
}

function nameOf(input: unknown): string {
  return isObject(input) && typeof input.name === 'string' ? input.name.slice(0, 64) : '(no name)';
}
