import { HostError } from '../../../core/host/errors/host-error.ts';
import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { KEY_HEADER } from '../keys/virtual-keys.ts';
import { loginOf, needsIdentity, type RouteEntry } from '../routes/entry.ts';
import { baseUrl, type ClientSettings, chosenRoutes } from './target.ts';

const COMMAND = 'gateway client-config';
const usage = (reason: string) => new HostError('HF_CLI_USAGE', { reason, command: COMMAND });

/** `holdfast gateway client-config`: the entries by which clients reach the gateway (G21). */
export function clientConfigCommand(settings: ClientSettings): CommandDefinition {
  return {
    name: COMMAND,
    summary: 'Prints the entries of a client: commands for the CLI client, a file for the desktop client',
    example: 'holdfast gateway client-config --client desktop --route library_docs',
    flags: [
      { flags: '--client <client>', summary: 'cli or desktop', default: 'cli' },
      { flags: '--route <name>', summary: 'only this route; may be given several times', repeatable: true },
      {
        flags: '--scope <scope>',
        summary: 'of the CLI client: user (all projects) or local (this one)',
        default: 'user',
      },
      {
        flags: '--url <url>',
        summary: "the gateway's base (default: HOLDFAST_PUBLIC_URL, then where it listens)",
      },
      {
        flags: '--registered',
        summary: `for identity routes: use the client ${FALLBACK_CLIENT} where registering one is refused`,
      },
      {
        flags: '--key-file <file>',
        summary: 'desktop: put the key of this file (mode 0600) into the entries',
      },
    ],
    async run(_args, flags, context) {
      const { client, scope, keyFile } = flags as Record<string, string | undefined>;
      if (client !== 'cli' && client !== 'desktop') throw usage('--client is cli or desktop.');
      if (scope !== 'user' && scope !== 'local') throw usage('--scope is user or local.');
      const wanted = flags.route as readonly string[] | undefined;
      const routes = await chosenRoutes(settings.routes, wanted, COMMAND, context);
      const options: ClientOptions = {
        gatewayUrl: baseUrl(flags.url as string | undefined, settings, context.dataDir, COMMAND),
        scope,
        clientId: flags.registered === true ? FALLBACK_CLIENT : undefined,
      };
      if (client === 'cli') return printCli(routes, options, context);
      const key = keyFile === undefined ? undefined : readTokenFile(keyFile);
      return printDesktop(routes, options, key, wanted !== undefined, context);
    },
  };
}

type Context = Parameters<CommandDefinition['run']>[2];

function printCli(
  routes: readonly RouteEntry[],
  options: ClientOptions,
  { json, print, note }: Context,
): number {
  const commands = routes.map((entry) => ({ route: entry.name, words: cliEntry(entry, options) }));
  if (json) print(JSON.stringify({ client: 'cli', variable: KEY_VARIABLE, commands }));
  else for (const { words } of commands) print(asTyped(words));
  note(`The client replaces \${${KEY_VARIABLE}}: set this variable to the virtual key in its environment.`);
  for (const entry of routes) {
    const scopes = fallbackScopes(entry);
    if (options.clientId !== undefined && scopes !== undefined) {
      note(`${entry.name}: also set oauth.scopes of its entry to "${scopes}".`);
    }
  }
  return 0;
}

function printDesktop(
  routes: readonly RouteEntry[],
  options: ClientOptions,
  key: string | undefined,
  named: boolean,
  { print, note }: Context,
): number {
  const usable = routes.filter((entry) => desktopRefusal(entry) === undefined);
  const refusals = routes.flatMap((entry) => desktopRefusal(entry) ?? []);
  if (named && refusals[0] !== undefined) throw usage(refusals.join(' '));
  const mcpServers = Object.fromEntries(
    usable.map((entry) => [entry.name, desktopEntry(entry, options, key)]),
  );
  print(JSON.stringify({ mcpServers }, undefined, 2));
  for (const refusal of refusals) note(refusal);
  note('The desktop client reads its file when it starts: restart it to reload.');
  if (key !== undefined) note('The entries hold the key: keep the file at mode 0600.');
  return 0;
}

/** Client entries refer to the virtual key by this variable, so that no entry contains it. */
const KEY_VARIABLE = 'HOLDFAST_VIRTUAL_KEY';

export interface ClientOptions {
  /** The gateway's public base, without a slash at its end. */
  readonly gatewayUrl: string;
  /** `user` for all projects, `local` for the current one. */
  readonly scope: 'user' | 'local';
  /** A registered client, for an identity provider that refuses to register one. */
  readonly clientId?: string | undefined;
}

/** The fallback client of the identity provider (G20). */
const FALLBACK_CLIENT = 'mcp-public';

/**
 * The command that adds a route to the CLI client (G21). Flags precede the server's name, the variable is left to the
 * client to fill in, and an identity route gets a callback port and no `Authorization`: a static one would end the
 * client's own login.
 *
 * @returns the words, each as it must reach the program
 */
function cliEntry(entry: RouteEntry, { gatewayUrl, scope, clientId }: ClientOptions): string[] {
  // --header takes all words up to the next flag, so it must not stand last before the name.
  const header = `${KEY_HEADER}: Bearer \${${KEY_VARIABLE}}`;
  const words = ['claude', 'mcp', 'add', '--header', header, '--transport', 'http', '--scope', scope];
  const login = loginOf(entry);
  if (login) {
    if (login.callbackPort !== undefined) words.push('--callback-port', String(login.callbackPort));
    if (clientId !== undefined) words.push('--client-id', clientId);
  }
  return [...words, entry.name, urlOf(entry, gatewayUrl)];
}

/** @returns the `oauth.scopes` that a CLI client's entry with a registered client needs beside the command */
function fallbackScopes(entry: RouteEntry): string | undefined {
  return loginOf(entry)?.scopes?.join(' ');
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
function desktopEntry(
  entry: RouteEntry,
  { gatewayUrl }: ClientOptions,
  value = '<virtual_key>',
): DesktopEntry {
  const header = `${KEY_HEADER}:\${${KEY_VARIABLE}}`;
  return {
    command: 'npx',
    args: ['-y', 'mcp-remote', urlOf(entry, gatewayUrl), '--header', header],
    env: { [KEY_VARIABLE]: `Bearer ${value}` },
  };
}

/** Why the desktop client can't use a route; undefined when it can. */
function desktopRefusal(entry: RouteEntry): string | undefined {
  if (!needsIdentity(entry)) return undefined;
  return `${entry.name} is an identity route: the desktop client's connector can't send the key header beside a login, and its bridge has no login. Use the CLI client.`;
}

/** A command as it is typed: quoted where a shell would read it otherwise. */
function asTyped(words: readonly string[]): string {
  return words
    .map((word) => (/^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`))
    .join(' ');
}

function urlOf({ name }: RouteEntry, gatewayUrl: string): string {
  return `${gatewayUrl}/${name}/mcp`;
}
