import { readFileSync, statSync } from 'node:fs';
import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import { CoreError } from '../../../core/kernel/errors/core-error.ts';
import { readTokenFile } from '../../../core/kernel/secret-file.ts';
import { askGateway, baseUrl, type ClientSettings, chosenRoutes } from '../commands/target.ts';
import type { RouteEntry } from '../routes/entry.ts';
import type { TableView } from '../routes/operations.ts';
import { ROUTES_PATH } from '../routes/operations.ts';
import { inspectClientFile } from './client-file.ts';
import { probeRoute, type RouteFinding } from './probe.ts';
import { diagnose } from './symptoms.ts';

const COMMAND = 'gateway doctor';
const LARGEST_FILE = 4 * 1024 * 1024;
const usage = (reason: string) => new CoreError('HF_CLI_USAGE', { reason, command: COMMAND });

/** `holdfast gateway doctor`: what is wrong with a route, an entry or a symptom, and what to do (G22, G26). */
export function doctorCommand(settings: ClientSettings): CommandDefinition {
  return {
    name: COMMAND,
    summary:
      'Calls every route as a client would and names the fix of what is wrong; exit 1 when something is',
    example: 'holdfast gateway doctor --key-file ~/.config/holdfast/key --route memory',
    flags: [
      { flags: '--key-file <file>', summary: 'the virtual key (mode 0600)' },
      { flags: '--token-file <file>', summary: 'an identity token (mode 0600), for identity routes' },
      { flags: '--route <name>', summary: 'only this route; may be given several times', repeatable: true },
      {
        flags: '--url <url>',
        summary: "the gateway's base (default: HOLDFAST_PUBLIC_URL, then where it listens)",
      },
      { flags: '--symptom <text>', summary: 'what a client says, where it can not be seen from outside' },
      {
        flags: '--entry <file>',
        summary: "a client's file with mcpServers, to look for mistakes in its entries",
      },
    ],
    async run(_args, flags, context) {
      const { keyFile, tokenFile, symptom, entry, url } = flags as Record<string, string | undefined>;
      const routes = chosenRoutes(settings.routes, flags.route as readonly string[] | undefined, COMMAND);
      if (symptom === undefined && entry === undefined && keyFile === undefined) {
        throw usage('Give a key with --key-file, a --symptom, or a client file with --entry.');
      }
      const relays = new Set(routes.filter(isRelay).map(({ name }) => name));
      const said = symptom === undefined ? undefined : { symptom, diagnosis: diagnose(symptom) };
      const entries = entry === undefined ? [] : inspectClientFile(parsedFile(entry), relays);
      const key = keyFile === undefined ? undefined : readTokenFile(keyFile);
      const token = tokenFile === undefined ? undefined : readTokenFile(tokenFile);
      const gatewayUrl = baseUrl(url, settings, context.dataDir, COMMAND);
      const probed =
        key === undefined ? [] : await probeAll(routes, { gatewayUrl, key, token }, context.signal);
      const findings = url === undefined ? await withoutUnset(probed, context) : probed;
      report({ said, entries, findings }, context);
      const unknown = said !== undefined && said.diagnosis === undefined;
      const sick = findings.some(({ state }) => state === 'sick');
      return entries.length > 0 || unknown || sick ? 1 : 0;
    },
  };
}

const isRelay = ({ disposition }: RouteEntry): boolean => disposition === 'relay';

/**
 * A key that does not name a route gets an empty list of it whether it has an upstream or not; the running instance knows.
 */
async function withoutUnset(
  findings: readonly RouteFinding[],
  context: CommandContext,
): Promise<readonly RouteFinding[]> {
  const isMeant = ({ diagnosis }: RouteFinding) => diagnosis?.code === 'not_entitled';
  if (!findings.some(isMeant)) return findings;
  const table = await askGateway<TableView>(context, ROUTES_PATH).catch(() => undefined);
  return findings.map((finding) => {
    const { reason } = table?.routes.find(({ name }) => name === finding.route) ?? {};
    const unset = isMeant(finding) ? /^not configured: (.*)$/.exec(reason ?? '')?.[1] : undefined;
    return unset === undefined ? finding : { route: finding.route, state: 'not_configured', found: unset };
  });
}

async function probeAll(
  routes: readonly RouteEntry[],
  target: { gatewayUrl: string; key: string; token: string | undefined },
  signal: AbortSignal,
): Promise<RouteFinding[]> {
  const { Agent } = await import('undici');
  const dispatcher = new Agent({ connect: { timeout: 5_000 } });
  try {
    return await Promise.all(
      // A token is for identity routes alone: no other upstream may see it.
      routes.map((entry) =>
        probeRoute(entry, {
          ...target,
          token: isRelay(entry) ? target.token : undefined,
          dispatcher,
          signal,
        }),
      ),
    );
  } finally {
    await dispatcher.destroy();
  }
}

interface Report {
  readonly said: { symptom: string; diagnosis: ReturnType<typeof diagnose> } | undefined;
  readonly entries: ReturnType<typeof inspectClientFile>;
  readonly findings: readonly RouteFinding[];
}

function report({ said, entries, findings }: Report, context: Parameters<CommandDefinition['run']>[2]): void {
  const { json, print, terminal } = context;
  if (json) {
    print(JSON.stringify({ ...(said && { symptom: said }), entries, routes: findings }));
    return;
  }
  const remedy = ({ cause, remedy: text }: { cause: string; remedy: string }) => {
    print(`  ${cause}`);
    print(`  ${text}`);
  };
  if (said?.diagnosis) remedy(said.diagnosis);
  else if (said) print('  No symptom of this kind is known; run it with --key-file to look from outside.');
  for (const { entry, ...found } of entries) {
    print(`${terminal.paint('yellow', entry)}`);
    remedy(found);
  }
  for (const { route, state, found, diagnosis } of findings) {
    const colour = state === 'healthy' ? 'green' : state === 'sick' ? 'red' : 'yellow';
    print(`${terminal.paint(colour, route.padEnd(14))} ${state.replace('_', ' ')}: ${found}`);
    if (diagnosis) remedy(diagnosis);
  }
}

function parsedFile(file: string): unknown {
  try {
    if (statSync(file).size > LARGEST_FILE) throw new RangeError('it is larger than 4 MiB');
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const reason =
      error instanceof SyntaxError ? 'it is no JSON' : error instanceof Error ? error.message : '';
    throw usage(`${file} can not be read: ${reason}.`);
  }
}
