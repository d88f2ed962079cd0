import { isObject } from '../../../core/kernel/json.ts';
import { KEY_HEADER } from '../keys/virtual-keys.ts';
import { type Diagnosis, diagnosis } from './symptoms.ts';

/** A fault of a client's entry, by the entry's name. It contains no value of a header. */
export interface EntryFinding extends Diagnosis {
  readonly entry: string;
}

const own = (code: string, cause: string, remedy: string): Diagnosis => ({ code, cause, remedy });

/**
 * Checks the entries of the CLI client's or the desktop client's file for faults that can't be seen from outside (G22).
 *
 * @param file parsed JSON; `mcpServers` at its root or in one of its projects
 * @param relays names of the identity routes
 */
export function inspectClientFile(file: unknown, relays: ReadonlySet<string>): EntryFinding[] {
  return serversIn(file).flatMap(([name, entry]) => {
    const findings = [...urlFaults(urlOf(entry)), ...headerFaults(headersOf(entry), routeOf(entry), relays)];
    if (typeof entry.command === 'string') findings.push(...bridgeFaults(entry, routeOf(entry), relays));
    return findings.map((found) => ({ entry: name, ...found }));
  });
}

type Entry = Readonly<Record<string, unknown>>;

function serversIn(file: unknown): [string, Entry][] {
  if (!isObject(file)) return [];
  const places = [file, ...Object.values(isObject(file.projects) ? file.projects : {})];
  return places.flatMap((place) => {
    const servers = isObject(place) && isObject(place.mcpServers) ? place.mcpServers : {};
    return Object.entries(servers).filter((pair): pair is [string, Entry] => isObject(pair[1]));
  });
}

const strings = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];

function urlOf(entry: Entry): string | undefined {
  if (typeof entry.url === 'string') return entry.url;
  return strings(entry.args).find((arg) => /^https?:/.test(arg));
}

function routeOf(entry: Entry): string {
  return /\/([^/?]+)\/mcp\/?(?:\?|$)/.exec(urlOf(entry) ?? '')?.[1] ?? '';
}

function headersOf(entry: Entry): [string, string][] {
  const headers = isObject(entry.headers) ? entry.headers : {};
  return Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
}

function urlFaults(url: string | undefined): Diagnosis[] {
  if (url === undefined)
    return [own('no_url', 'The entry has no URL.', 'Set it to {gateway_url}/<server>/mcp.')];
  const found: Diagnosis[] = [];
  if (/[?&](?:key|api_key|token)=/i.test(url)) found.push(diagnosis('key_in_query'));
  const path = url.replace(/^https?:\/\/[^/]*/, '').split('?', 1)[0] ?? '';
  if (/\/sse\/?$/.test(path) && path !== '/mcp/sse') found.push(diagnosis('wrong_sse_path'));
  else if (/^\/[^/]+\/mcp\/$/.test(path)) found.push(diagnosis('trailing_slash'));
  else if (/^\/[^/]*-[^/]*\/mcp$/.test(path)) found.push(diagnosis('hyphen'));
  else if (!/^\/[^/]+\/mcp$|^\/mcp\/(?:sse)?$/.test(path)) found.push(diagnosis('wrong_url'));
  return found;
}

function headerFaults(
  headers: readonly (readonly [string, string])[],
  route: string,
  relays: ReadonlySet<string>,
): Diagnosis[] {
  const found: Diagnosis[] = [];
  const key = headers.find(([name]) => name === KEY_HEADER)?.[1];
  if (key !== undefined && !/^Bearer \S/.test(key) && !/^\$\{\w+\}$/.test(key)) {
    found.push(diagnosis('key_without_prefix'));
  }
  const authorization = headers.some(([name]) => name === 'authorization');
  if (authorization && relays.has(route)) found.push(diagnosis('no_login'));
  else if (authorization) found.push(diagnosis('key_in_authorization'));
  return found;
}

function bridgeFaults(entry: Entry, route: string, relays: ReadonlySet<string>): Diagnosis[] {
  const found: Diagnosis[] = [];
  if (relays.has(route)) {
    found.push(
      own(
        'bridge_without_login',
        'This is an identity route, and the bridge has no login.',
        'Use the CLI client for it, and take the entry out here.',
      ),
    );
  }
  const args = strings(entry.args);
  const header = args[args.indexOf('--header') + 1] ?? '';
  if (!args.includes('--header')) found.push(diagnosis('key_wrong'));
  else if (/:\s/.test(header)) {
    found.push(
      own(
        'space_after_colon',
        'The bridge cuts a header value at a space.',
        `Write ${KEY_HEADER}:\${VARIABLE} without a space, put "Bearer <virtual_key>" into the variable, and restart the client.`,
      ),
    );
  }
  const variable = /\$\{(\w+)\}/.exec(header)?.[1];
  const value = variable !== undefined && isObject(entry.env) ? entry.env[variable] : undefined;
  if (typeof value === 'string' && !value.startsWith('Bearer ')) found.push(diagnosis('key_without_prefix'));
  return found;
}
