import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import { table, wrapped } from '../../../core/host/terminal.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { ROUTES_PATH } from '../routes/control.ts';
import { readEntries, variablesOf } from '../routes/definition.ts';
import type { RouteView, TableView } from '../routes/view.ts';
import { askGateway } from './ask.ts';

/** `holdfast gateway routes`: what serves, how it is, and what of the configuration does not serve. */
export const routesCommand: CommandDefinition = {
  name: 'gateway routes',
  first: true,
  summary: 'Lists the routes: how each is, where it goes, and which entries are rejected',
  example: 'holdfast gateway routes --json',
  async run(_args, _flags, context) {
    const view = await tableOf(context);
    if (context.json) return context.print(JSON.stringify(view, null, 2));
    for (const line of tableLines(view, context)) context.print(line);
  },
};

/** Of the running instance; where none runs, what the configuration would start. */
async function tableOf(context: CommandContext): Promise<TableView & { readonly running: boolean }> {
  try {
    return { running: true, ...(await askGateway<TableView>(context, ROUTES_PATH)) };
  } catch (error) {
    if (!isCoded(error, 'HF_CONTROL_UNREACHABLE')) throw error;
    const { plugins } = await context.config();
    const gateway = plugins.find(({ definition }) => definition.name === 'gateway');
    const inputs = (gateway?.options.routes ?? []) as readonly unknown[];
    const { definitions, rejected } = readEntries(inputs, process.env);
    const routes = definitions.map(({ entry, url, secret }): RouteView => {
      const disposition = entry.disposition === 'custom' ? entry.kind.name : entry.disposition;
      const shown = url === undefined ? undefined : new URL(url);
      return {
        name: entry.name,
        disposition,
        ...(shown && { upstream: shown.origin + shown.pathname }),
        ...(secret !== undefined && { secret }),
        ...(url === undefined && { reason: `not configured: set ${variablesOf(entry.name)}_URL` }),
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
    ...(refused === undefined ? [] : [`the file is refused: ${refused}`]),
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
  return health?.state ?? 'unknown';
}

const toolsOf = ({ health }: RouteView): string => (health?.tools === undefined ? '-' : String(health.tools));
const checkedOf = ({ health }: RouteView): string => health?.checkedAt?.slice(11, 19) ?? '-';

/** Clients hear who should have the token; the operator also by which name. */
function missingOf({ reason, secret }: RouteView): string | undefined {
  const names = reason?.startsWith('without its token') && secret !== undefined;
  return names ? `${reason} (${secret})` : reason;
}

/** What is served of a relay route's document though its upstream can't be asked for it. */
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
