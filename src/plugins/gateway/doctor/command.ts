import { readFileSync, statSync } from 'node:fs';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { HttpClient } from '../../../core/host/http/client.ts';
import { pinAt } from '../../../core/host/http/own-surface.ts';
import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import { readRuntimeFile } from '../../../core/host/runtime/runtime-file.ts';
import { readTokenFile } from '../../../core/host/secrets/token-file.ts';
import { askGateway, baseUrl, type ClientSettings, chosenRoutes } from '../commands/target.ts';
import { needsIdentity, type RouteEntry } from '../routes/entry.ts';
import { ROUTES_PATH, type TableView } from '../routes/operations.ts';
import { type EntryFinding, inspectClientFile } from './client-file.ts';
import { probeRoute, type RouteFinding } from './probe.ts';
import { type Diagnosis, diagnose, diagnosis } from './symptoms.ts';

const COMMAND = 'gateway doctor';
const CLIENT_FILE_LIMIT = 4 * 1024 * 1024;
const TIMEOUT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 5_000;
const ANSWER_LIMIT = 4 * 1024 * 1024;
const usage = (reason: string) => new HostError('HF_CLI_USAGE', { reason, command: COMMAND });

/** `holdfast gateway doctor`: what is wrong with a route, a client's entry or a symptom, and what to do (G22, G26). */
export function doctorCommand(settings: ClientSettings): CommandDefinition {
  return {
    name: COMMAND,
    summary: 'Calls every route as a client would and says what to do about faults; exit 1 when there is one',
    example: 'holdfast gateway doctor --key-file ~/.config/holdfast/key --route memory',
    flags: [
      { flags: '--key-file <file>', summary: 'the virtual key (mode 0600)' },
      { flags: '--token-file <file>', summary: 'an identity token (mode 0600), for identity routes' },
      { flags: '--route <name>', summary: 'only this route; may be given several times', repeatable: true },
      {
        flags: '--url <url>',
        summary: "the gateway's base (default: HOLDFAST_PUBLIC_URL, then where it listens)",
      },
      { flags: '--insecure', summary: 'the key may go to another machine over http' },
      { flags: '--symptom <text>', summary: "a client's message, where it can not be seen from outside" },
      {
        flags: '--entry <file>',
        summary: "a client's file with mcpServers, whose entries are checked for mistakes",
      },
    ],
    async run(_args, flags, context) {
      const { keyFile, tokenFile, symptom, entry, url } = flags as Record<string, string | undefined>;
      const wanted = flags.route as readonly string[] | undefined;
      const routes = await chosenRoutes(settings.routes, wanted, COMMAND, context);
      if (symptom === undefined && entry === undefined && keyFile === undefined) {
        throw usage('Give a key with --key-file, a --symptom, or a client file with --entry.');
      }
      const relays = new Set(routes.filter(needsIdentity).map(({ name }) => name));
      const reported = symptom === undefined ? undefined : { symptom, diagnosis: diagnose(symptom) };
      const entries = entry === undefined ? [] : inspectClientFile(parsedFile(entry), relays);
      const key = keyFile === undefined ? undefined : readTokenFile(keyFile);
      const token = tokenFile === undefined ? undefined : readTokenFile(tokenFile);
      const gatewayUrl = baseUrl(url, settings, context.dataDir, COMMAND);
      const pin = pinAt(readRuntimeFile(context.dataDir)?.surfaces, gatewayUrl);
      const insecure = flags.insecure === true;
      const probed =
        key === undefined
          ? []
          : await probeAll(routes, { gatewayUrl, key, token, insecure, pin }, context.signal);
      const findings = url === undefined ? await withTableFacts(probed, context) : probed;
      printReport({ reported, entries, findings }, context);
      const isUnknown = reported !== undefined && reported.diagnosis === undefined;
      const isSick = findings.some(({ state }) => state === 'sick');
      return entries.length > 0 || isUnknown || isSick ? 1 : 0;
    },
  };
}

/**
 * What the running instance knows and no client can see: which routes have no upstream, where a key without entitlement sees
 * an empty tool list as well, and whose token can't be used while the last good one goes on.
 */
async function withTableFacts(
  findings: readonly RouteFinding[],
  context: CommandContext,
): Promise<readonly RouteFinding[]> {
  if (findings.length === 0) return findings;
  const table = await askGateway<TableView>(context, ROUTES_PATH).catch(() => undefined);
  return findings.map((finding): RouteFinding => {
    const { route } = finding;
    const { reason = '', health } = table?.routes.find(({ name }) => name === route) ?? {};
    if (health?.state === 'token_unusable') {
      const code = health.token === 'issued' ? 'token_not_issued' : 'token_unusable';
      return { route, state: 'sick', found: health.reason ?? '', diagnosis: diagnosis(code) };
    }
    const isAmbiguous = finding.diagnosis?.code === 'not_entitled';
    const missing = isAmbiguous ? /^not configured: (.*)$/.exec(reason)?.[1] : undefined;
    return missing === undefined ? finding : { route, state: 'not_configured', found: missing };
  });
}

async function probeAll(
  routes: readonly RouteEntry[],
  target: {
    gatewayUrl: string;
    key: string;
    token: string | undefined;
    insecure: boolean;
    pin: string | undefined;
  },
  signal: AbortSignal,
): Promise<RouteFinding[]> {
  const http = new HttpClient({
    timeoutMs: TIMEOUT_MS,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    answerLimit: ANSWER_LIMIT,
    insecure: target.insecure,
    pin: target.pin,
  });
  try {
    return await Promise.all(
      routes.map((entry) => {
        // Only upstreams of identity routes may see the token.
        const token = needsIdentity(entry) ? target.token : undefined;
        return probeRoute(entry, { ...target, token, http, signal });
      }),
    );
  } finally {
    await http.close();
  }
}

interface Report {
  readonly reported: { readonly symptom: string; readonly diagnosis: Diagnosis | undefined } | undefined;
  readonly entries: readonly EntryFinding[];
  readonly findings: readonly RouteFinding[];
}

function printReport(
  { reported, entries, findings }: Report,
  { json, print, terminal }: CommandContext,
): void {
  if (json) {
    print(JSON.stringify({ ...(reported && { symptom: reported }), entries, routes: findings }));
    return;
  }
  const printDiagnosis = ({ cause, remedy }: Pick<Diagnosis, 'cause' | 'remedy'>) => {
    print(`  ${cause}`);
    print(`  ${remedy}`);
  };
  if (reported?.diagnosis) printDiagnosis(reported.diagnosis);
  else if (reported)
    print('  This symptom is not known. Run the command with --key-file to probe the routes.');
  for (const { entry, ...found } of entries) {
    print(terminal.paint('yellow', entry));
    printDiagnosis(found);
  }
  for (const { route, state, found, diagnosis: what } of findings) {
    const colour = state === 'healthy' ? 'green' : state === 'sick' ? 'red' : 'yellow';
    print(`${terminal.paint(colour, route.padEnd(14))} ${state.replace('_', ' ')}: ${found}`);
    if (what) printDiagnosis(what);
  }
}

function parsedFile(file: string): unknown {
  try {
    if (statSync(file).size > CLIENT_FILE_LIMIT) throw new RangeError('it is larger than 4 MiB');
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const reason =
      error instanceof SyntaxError ? 'it is not JSON' : error instanceof Error ? error.message : '';
    throw usage(`${file} can not be read: ${reason}.`);
  }
}
