import { ADMISSION_HEADER } from '../keys/misplaced.ts';
import type { RouteEntry } from '../routes/entry.ts';

/** The variable by which client entries name the virtual key, so that no entry holds it. */
export const KEY_VARIABLE = 'HOLDFAST_VIRTUAL_KEY';

export interface ClientOptions {
  /** The gateway's public base, without a slash at its end. */
  readonly gatewayUrl: string;
  /** `user` for all projects, `local` for the current one. */
  readonly scope: 'user' | 'local';
  /** Name a registered client instead of registering one: where the identity provider refuses that. */
  readonly clientId?: string | undefined;
}

/** The fallback client of the identity provider (G20). */
export const FALLBACK_CLIENT = 'mcp-public';

/**
 * The command that adds a route to the CLI client (G21). Flags precede the server's name, the variable is left to the
 * client to fill in, and an identity route gets a callback port and no `Authorization`: a static one would end the
 * client's own login.
 *
 * @returns the words, each as it must reach the program
 */
export function cliEntry(entry: RouteEntry, { gatewayUrl, scope, clientId }: ClientOptions): string[] {
  // --header takes all words up to the next flag, so it must not stand last before the name.
  const header = `${ADMISSION_HEADER}: Bearer \${${KEY_VARIABLE}}`;
  const words = ['claude', 'mcp', 'add', '--header', header, '--transport', 'http', '--scope', scope];
  if (entry.disposition === 'relay') {
    if (entry.callbackPort !== undefined) words.push('--callback-port', String(entry.callbackPort));
    if (clientId !== undefined) words.push('--client-id', clientId);
  }
  return [...words, entry.name, urlOf(entry, gatewayUrl)];
}

/** What the CLI client's entry needs beside the command when it names a client: `oauth.scopes` of the entry. */
export function fallbackScopes(entry: RouteEntry): string | undefined {
  return entry.disposition === 'relay' ? entry.scopes?.join(' ') : undefined;
}

/** One server of the desktop client's file. */
export interface DesktopEntry {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * A route for the desktop client, through a stdio bridge (G21). No space follows the header's colon: the bridge's
 * parser would cut the value there.
 *
 * @param value of the virtual key; a placeholder unless given
 */
export function desktopEntry(
  entry: RouteEntry,
  { gatewayUrl }: ClientOptions,
  value = '<virtual_key>',
): DesktopEntry {
  const header = `${ADMISSION_HEADER}:\${${KEY_VARIABLE}}`;
  return {
    command: 'npx',
    args: ['-y', 'mcp-remote', urlOf(entry, gatewayUrl), '--header', header],
    env: { [KEY_VARIABLE]: `Bearer ${value}` },
  };
}

/** Why the desktop client can't use a route; undefined when it can. */
export function desktopRefusal(entry: RouteEntry): string | undefined {
  if (entry.disposition !== 'relay') return undefined;
  return `${entry.name} is an identity route: the desktop client's connector can't send the admission header beside a login, and its bridge has no login. Use the CLI client.`;
}

/** A command as it is typed: quoted where a shell would read it otherwise. */
export function asTyped(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}

function urlOf({ name }: RouteEntry, gatewayUrl: string): string {
  return `${gatewayUrl}/${name}/mcp`;
}
