import { HostError } from '../../../core/host/errors/host-error.ts';
import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import { table, wrapped } from '../../../core/host/terminal.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { RouteChange } from '../../../machines/gateway/routes.ts';
import { readRouteEntries, variablesOf } from '../routes/entries.ts';
import {
  RELOAD_PATH,
  type ReloadedHost,
  type ReloadedHosts,
  ROLLBACK_PATH,
  ROUTES_PATH,
  type RouteView,
  type TableView,
} from '../routes/operations.ts';
import { upstreamOf } from '../routes/sealed-definitions.ts';
import { changesText } from '../words.ts';
import { askGateway } from './target.ts';

/** `holdfast gateway routes`: the routes with their health, and the entries that are rejected. */
export const routesCommand: CommandDefinition = {
  name: 'gateway routes',
  first: true,
  summary: 'Lists the routes with their health and upstreams, and the entries that are rejected',
  example: 'holdfast gateway routes --json',
  async run(_args, _flags, context) {
    const view = await tableOf(context);
    if (context.json) return context.print(JSON.stringify(view, null, 2));
    for (const line of tableLines(view, context)) context.print(line);
  },
};

/** Asks the running instance; when none runs, reads the configuration. */
async function tableOf(context: CommandContext): Promise<TableView & { readonly running: boolean }> {
  try {
    return { running: true, ...(await askGateway<TableView>(context, ROUTES_PATH)) };
  } catch (error) {
    if (!isCoded(error, 'HF_CONTROL_UNREACHABLE')) throw error;
    const { plugins } = await context.config();
    const gateway = plugins.find(({ definition }) => definition.name === 'gateway');
    const inputs = (gateway?.options.routes ?? []) as readonly unknown[];
    const { definitions, rejected } = readRouteEntries(inputs, process.env);
    const routes = definitions.map((definition): RouteView => {
      const { entry, secret } = definition;
      const disposition = entry.disposition === 'custom' ? entry.kind.name : entry.disposition;
      const place = upstreamOf(definition);
      return {
        name: entry.name,
        disposition,
        ...place,
        ...(secret !== undefined && { secret }),
        ...(place.upstream === undefined && {
          reason: `not configured: set ${variablesOf(entry.name)}_URL, unless a plugin serves it`,
        }),
        since: '',
        revision: 0,
        before: [],
      };
    });
    return { running: false, revision: 0, routes, rejected };
  }
}

function tableLines(
  { running, revision, routes, rejected, refused }: TableView & { readonly running: boolean },
  { terminal }: CommandContext,
): string[] {
  const rows = routes.map((route) => [
    route.name,
    route.disposition,
    stateOf(route, running),
    toolsOf(route),
    checkedOf(route),
    whyOf(route),
  ]);
  const head = ['route', 'disposition', 'state', 'tools', 'checked', 'why, or where it goes'];
  const [title = [], ...lines] = table([head, ...rows], terminal);
  const wrong = [
    ...rejected.map(({ name, reason }) => `rejected: ${name}: ${reason}`),
    ...(refused === undefined ? [] : [`the changed file is refused: ${refused}`]),
  ];
  return [
    running ? `revision ${revision}` : 'no instance runs; this is what the configuration would start',
    ...title.map((line) => terminal.paint('bold', line)),
    ...lines.flat(),
    ...wrong
      .flatMap((text) => (terminal.interactive ? wrapped(text, terminal.columns) : [text]))
      .map((line) => terminal.paint('red', line)),
  ];
}

function stateOf({ health, reason }: RouteView, running: boolean): string {
  if (!running) return '-';
  if (reason?.startsWith('not configured')) return 'not configured';
  return health?.state.replaceAll('_', ' ') ?? 'unknown';
}

const toolsOf = ({ health }: RouteView): string => (health?.tools === undefined ? '-' : String(health.tools));
const checkedOf = ({ health }: RouteView): string => health?.checkedAt?.slice(11, 19) ?? '-';

/** Unlike clients, the operator also sees the name of the missing token, and the place of one that can't be used. */
function missingOf({ reason, secret, health }: RouteView): string | undefined {
  if (health?.state === 'token_unusable') return health.reason;
  const names = reason?.startsWith('without its ') && secret !== undefined;
  return names ? `${reason} (${secret})` : reason;
}

/** Says which document of a relay route is served while the upstream can't be reached. */
function documentTexts({ document, health }: RouteView): string[] {
  if (document?.trouble === undefined) return [];
  const { trouble, last, heardAt = '' } = document;
  const failed = health?.reason === trouble ? [] : [`its document can not be read: it ${trouble}`];
  if (last === undefined) return [...failed, 'its document was never read'];
  const at = heardAt.slice(11, 19);
  return [...failed, last === 'document' ? `its document of ${at} serves on` : `it had no document at ${at}`];
}

function whyOf(route: RouteView): string {
  const { problem, pinned, upstream, health } = route;
  const texts = [
    missingOf(route)?.replace(/^not configured: /, '') ?? health?.reason ?? upstream ?? '',
    ...(problem === undefined ? [] : [`the entry in the file does not serve: ${problem}`]),
    ...documentTexts(route),
    ...(pinned ? ['rolled back until its entry changes'] : []),
  ];
  return texts.filter((text) => text !== '').join('; ');
}

/** `holdfast gateway reload`: reads the configuration now, without waiting for the watch on its file. */
export const reloadCommand: CommandDefinition = {
  name: 'gateway reload',
  summary: 'Reads plugins.config.ts again and replaces the routes; exit 1 when an entry is rejected',
  example: 'holdfast gateway reload',
  async run(_args, _flags, context) {
    const { revision } = await askGateway<TableView>(context, ROUTES_PATH);
    return printChanges(context, await askGateway(context, RELOAD_PATH), revision);
  },
};

/** `holdfast gateway rollback <route>`: restores entry, environment entry and secret reference together (G24). */
export const rollbackCommand: CommandDefinition = {
  name: 'gateway rollback <route>',
  summary: 'Restores the definition before the last change of a route, until its entry changes again',
  example: 'holdfast gateway rollback library_docs',
  flags: [
    { flags: '--to <revision>', summary: 'restore the definition that began to serve in this revision' },
  ],
  async run([route], flags, context) {
    const to = flags.to === undefined ? undefined : Number(flags.to);
    if (to !== undefined && (!Number.isInteger(to) || to < 1)) {
      const reason = '--to takes the number of a revision.';
      throw new HostError('HF_CLI_USAGE', { reason, command: 'gateway rollback' });
    }
    const body = { route, ...(to !== undefined && { to }) };
    // Rejected entries of other routes are no failure of this command.
    printChanges(context, await askGateway(context, ROLLBACK_PATH, body), 0);
  },
};

interface ChangedTable extends Partial<ReloadedHosts> {
  readonly revision: number;
  readonly changes: readonly RouteChange[];
  readonly rejected: readonly { readonly name: string; readonly reason: string }[];
  readonly restart?: readonly string[];
}

/** @param before revision that served before, by which an answer without changes is recognized @returns the exit code */
function printChanges(
  { json, print, terminal }: CommandContext,
  answer: ChangedTable,
  before: number,
): number {
  const { revision, changes, rejected, restart = [], hosts = [], silent = [] } = answer;
  const isWrong = ({ refused, rejected: wrong = [] }: ReloadedHost) =>
    refused !== undefined || wrong.length > 0;
  const failed = rejected.length > 0 || hosts.some(isWrong) || silent.length > 0 ? 1 : 0;
  const isNew = revision !== before;
  if (json) {
    print(JSON.stringify({ ...answer, changes: isNew ? changes : [] }));
    return failed;
  }
  print(`revision ${revision} serves: ${isNew ? changesText(changes) : 'nothing changed'}`);
  for (const { name, reason } of rejected) print(terminal.paint('red', `rejected: ${name}: ${reason}`));
  if (restart.length > 0) print(`takes effect at the next start: ${restart.join(', ')}`);
  for (const host of hosts) print(isWrong(host) ? terminal.paint('red', hostText(host)) : hostText(host));
  if (silent.length > 0)
    print(terminal.paint('red', `no answer from ${silent.join(', ')}: what is served there is unknown`));
  return failed;
}

function hostText({ host, revision, refused, rejected = [] }: ReloadedHost): string {
  const wrong = rejected.map(({ name, reason }) => `; rejected: ${name}: ${reason}`).join('');
  return `on ${host}: ${refused ?? `revision ${revision} serves`}${wrong}`;
}
