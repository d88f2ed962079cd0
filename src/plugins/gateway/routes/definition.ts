import { problemsOf } from '../../../core/host/config/problem.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type { RejectedEntry } from '../../../machines/gateway/routes.ts';
import { type RouteEntry, routeSchema } from './entry.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * All that makes a route: its entry, and what its environment entry gave. Holds no token, but its URL may hold a
 * secret.
 */
export interface RouteDefinition {
  readonly entry: RouteEntry;
  /** The upstream, query included; undefined when it is not configured. */
  readonly url: string | undefined;
  /** Where the token is: `file:<path>`, `env:<variable>` or `store:<path>#<property>`; undefined when nobody says. */
  readonly secret: string | undefined;
}

/** The prefix of a route's environment entry. */
export const variablesOf = (name: string): string => `HOLDFAST_MCP_${name.toUpperCase()}`;

export interface Entries {
  readonly definitions: readonly RouteDefinition[];
  readonly rejected: readonly RejectedEntry[];
}

/**
 * Reads the entries of `plugins.config.ts`. Each stands for itself: a bad one is listed with its reason, and keeps no
 * other from serving (G2). Of two of one name neither is taken, for nobody knows which is meant.
 */
export function readEntries(inputs: readonly unknown[], env: Environment): Entries {
  const rejected: RejectedEntry[] = [];
  const read = inputs.flatMap((input): RouteDefinition[] => {
    const definition = definitionOf(input, env);
    if (!('reason' in definition)) return [definition];
    rejected.push(rejectedEntry(nameOf(input), definition.reason));
    return [];
  });
  const counts = new Map<string, number>();
  for (const { entry } of read) counts.set(entry.name, (counts.get(entry.name) ?? 0) + 1);
  for (const [name, count] of counts) {
    if (count > 1) rejected.push(rejectedEntry(name, `${count} entries bear this name: keep one of them`));
  }
  return { definitions: read.filter(({ entry }) => counts.get(entry.name) === 1), rejected };
}

/** @param name as it was written */
export function rejectedEntry(name: string, reason: string): RejectedEntry {
  return { name, route: name.replaceAll('-', '_'), reason };
}

function definitionOf(input: unknown, env: Environment): RouteDefinition | { readonly reason: string } {
  const parsed = routeSchema.safeParse(input);
  const [problem] = problemsOf(routeSchema, input, parsed.error?.issues ?? []);
  if (problem) return { reason: `${problem.option}: ${problem.reason}${problem.hint && `.${problem.hint}`}` };
  const entry = withOptions(parsed.data as RouteEntry);
  if ('reason' in entry) return entry;
  const variables = variablesOf(entry.name);
  const url = entry.url ?? (env[`${variables}_URL`] || undefined);
  const from = entry.url === undefined ? `${variables}_URL` : 'url';
  const wrong = url === undefined ? undefined : wrongWith(url);
  if (wrong !== undefined) return { reason: `${from}: ${wrong}` };
  if ('secret' in entry && entry.secret !== undefined && entry.tokenFile !== undefined) {
    return { reason: 'secret: it says the same as tokenFile: keep one of the two' };
  }
  return { entry, url, secret: secretOf(entry, env, variables) };
}

/** Holds the `options` of a kind of its own against the kind's schema. */
function withOptions(entry: RouteEntry): RouteEntry | { readonly reason: string } {
  if (entry.disposition !== 'custom') return entry;
  const { kind, options } = entry;
  const parsed = kind.options.safeParse(options ?? {});
  const [problem] = problemsOf(kind.options, options, parsed.error?.issues ?? []);
  if (problem)
    return { reason: `options.${problem.option}: ${problem.reason}${problem.hint && `.${problem.hint}`}` };
  return { ...entry, options: parsed.data };
}

function secretOf(entry: RouteEntry, env: Environment, variables: string): string | undefined {
  if (entry.disposition !== 'overwrite' && entry.disposition !== 'custom') return undefined;
  if (entry.secret !== undefined) return `store:${entry.secret}`;
  const file = entry.tokenFile ?? (env[`${variables}_TOKEN_FILE`] || undefined);
  if (file !== undefined) return `file:${file}`;
  return env[`${variables}_TOKEN`] ? `env:${variables}_TOKEN` : undefined;
}

function wrongWith(address: string): string | undefined {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return 'it is no http or https URL';
  const isBare = url.username === '' && url.password === '';
  return isBare ? undefined : 'it holds a user or password, which belong in the token file';
}

function nameOf(input: unknown): string {
  return isObject(input) && typeof input.name === 'string' ? input.name.slice(0, 64) : '(no name)';
}
