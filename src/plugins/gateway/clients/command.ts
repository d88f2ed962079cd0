import type { CommandDefinition } from '../../../core/host/plugin/command.ts';
import { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import type { RouteEntry } from '../routes/entry.ts';
import {
  asTyped,
  type ClientOptions,
  cliEntry,
  desktopEntry,
  desktopRefusal,
  FALLBACK_CLIENT,
  fallbackScopes,
  KEY_VARIABLE,
} from './entries.ts';
import { baseUrl, type ClientSettings, chosenRoutes } from './settings.ts';

const COMMAND = 'gateway client-config';
const usage = (reason: string) => new HoldfastError('HF_CLI_USAGE', { reason, command: COMMAND });

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
    run(_args, flags, context) {
      const { client, scope, keyFile } = flags as Record<string, string | undefined>;
      if (client !== 'cli' && client !== 'desktop') throw usage('--client is cli or desktop.');
      if (scope !== 'user' && scope !== 'local') throw usage('--scope is user or local.');
      const wanted = flags.route as readonly string[] | undefined;
      const routes = chosenRoutes(settings.routes, wanted, COMMAND);
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
  note(`The client fills in \${${KEY_VARIABLE}} itself: set it in its environment to the virtual key.`);
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
  note('The desktop client reads its file at its start: restart it to reload.');
  if (key !== undefined) note('The entries hold the key: keep the file at mode 0600.');
  return 0;
}
