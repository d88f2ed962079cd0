import type { McpRoute } from '../../../core/contracts/mcp-routes.ts';
import type { Contributed } from '../../../core/contracts/token.ts';
import { problemsOf } from '../../../core/host/config/problem.ts';
import { plaintextProblem } from '../../../core/host/http/plaintext.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { RejectedEntry } from '../../../machines/gateway/routes.ts';
import {
  hasIssuedTokens,
  type IssuedEntry,
  needsIdentity,
  type RouteEntry,
  routeSchema,
  type ToolSettings,
} from './entry.ts';

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

/** What of an entry is a server on this machine. */
const LOCAL = ['server', 'command', 'openapi'] as const;

const hasUpstream = ({ url, entry }: RouteDefinition): boolean =>
  url !== undefined || LOCAL.some((field) => entry[field] !== undefined);

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
 * A relay entry without an upstream works with the key alone, unless it names an identity provider: then tokens are checked
 * in front of the plugin's server.
 */
function withoutIdentity(input: Readonly<Record<string, unknown>>, env: Environment): unknown {
  const { audience, callbackPort, scopes, scopesInChallenge, relayErrors, ...others } = input;
  const hasUrl = input.url !== undefined || Boolean(env[`${variablesOf(String(input.name))}_URL`]);
  const isChecked = hasUrl || input.authorizationServers !== undefined;
  return input.disposition === 'relay' && !isChecked ? { ...others, disposition: 'credential_free' } : input;
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
  if (needsIdentity(checked) && checked.pin !== 'follow')
    return {
      reason: 'pin: the gateway has no credential of its own to look at the tools of an identity route',
    };
  if ((checked.disposition === 'relay' || hasIssuedTokens(checked)) && checked.openapi)
    return {
      reason:
        'openapi: its credential is a token of the gateway, or none: take overwrite, a custom kind or credentialFree',
    };
  const clash = sharedToolName(checked.toolSettings);
  if (clash !== undefined) return { reason: `toolSettings: ${clash}` };
  const { name, url: own } = checked;
  const [first, second] = (['url', ...LOCAL] as const).filter((field) => checked[field] !== undefined);
  if (second) return { reason: `${second}: ${first} is set as well: keep one of the two` };
  const variables = variablesOf(name);
  const url = own ?? (env[`${variables}_URL`] || undefined);
  const from = own === undefined ? `${variables}_URL` : 'url';
  const entry =
    url === undefined ? checked : { ...checked, server: undefined, command: undefined, openapi: undefined };
  const invalidUrl = url === undefined ? undefined : urlProblem(url);
  if (invalidUrl !== undefined) return { reason: `${from}: ${invalidUrl}` };
  const file = 'tokenFile' in entry ? 'tokenFile' : 'secretFile';
  if ('secret' in entry && entry.secret !== undefined && fileOf(entry) !== undefined) {
    return { reason: `secret: ${file} is set as well: keep one of the two` };
  }
  const insecure = entry.insecure ?? /^(?:true|yes|on|1)$/i.test(env[`${variables}_INSECURE`] ?? '');
  const credential = sentBy(entry);
  const plaintext =
    credential === undefined
      ? undefined
      : plaintextProblem({ url: url ?? entry.openapi?.baseUrl, insecure, credential });
  if (plaintext !== undefined) return { reason: `insecure: ${plaintext}` };
  const unissued = hasIssuedTokens(entry) ? issuerProblem(entry, insecure) : undefined;
  if (unissued !== undefined) return { reason: unissued };
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
  const { disposition } = entry;
  if (disposition === 'relay' || disposition === 'credential_free') return undefined;
  if (entry.secret !== undefined) return `store:${entry.secret}`;
  const variable = hasIssuedTokens(entry) ? `${variables}_CLIENT_SECRET` : `${variables}_TOKEN`;
  const file = fileOf(entry) ?? (env[`${variable}_FILE`] || undefined);
  if (file !== undefined) return `file:${file}`;
  return env[variable] ? `env:${variable}` : undefined;
}

/** @returns the file of an entry's token, or of its client's secret */
function fileOf(entry: RouteEntry): string | undefined {
  if ('secretFile' in entry) return entry.secretFile;
  return 'tokenFile' in entry ? entry.tokenFile : undefined;
}

/** @returns why no token could be asked for */
function issuerProblem({ issuer, tokenEndpoint }: IssuedEntry, insecure: boolean): string | undefined {
  const [first, second] = Object.entries({ issuer, tokenEndpoint }).filter(([, url]) => url !== undefined);
  if (!first) return 'issuer: neither it nor tokenEndpoint is set: name where tokens come from';
  if (second) return 'tokenEndpoint: issuer is set as well: keep one of the two';
  const [field, url = ''] = first;
  const problem = urlProblem(url);
  if (problem !== undefined) return `${field}: ${problem}`;
  const plaintext = plaintextProblem({ url, insecure, credential: "the client's secret" });
  return plaintext === undefined ? undefined : `insecure: ${plaintext}`;
}

/** What a route sends besides the call; a custom kind may set any header. */
function sentBy({ disposition }: RouteEntry): string | undefined {
  switch (disposition) {
    case 'overwrite':
    case 'client_credentials':
    case 'token_exchange':
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
  return isBare ? undefined : 'it contains a user or password, which belong in a file of secrets';
}

function nameOf(input: unknown): string {
  return isObject(input) && typeof input.name === 'string' ? input.name.slice(0, 64) : '(no name)';
}
