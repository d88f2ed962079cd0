/**
 * The pages of `docs/reference/`, made from what core and the plugins of `plugins.config.ts` declare. `npm run docs` writes
 * them, and `test/docs/reference.test.ts` fails while one of them is not what this makes.
 */
import { readdirSync } from 'node:fs';
import { coreCommands } from '../src/cli/commands.ts';
import { CliError } from '../src/cli/errors.ts';
import { graphOf, mermaid } from '../src/cli/graph.ts';
import { listedOf } from '../src/cli/program.ts';
import { loadConfig } from '../src/core/host/config/load.ts';
import { HostError } from '../src/core/host/errors/host-error.ts';
import { type CommandDefinition, commandWords } from '../src/core/host/plugin/command.ts';
import { errorTablesOf, type PluginDefinition } from '../src/core/host/plugin/definition.ts';
import { PluginHost } from '../src/core/host/plugin/host.ts';
import type { Registrations } from '../src/core/host/plugin/registrations.ts';
import type { ErrorEntry } from '../src/core/kernel/errors/holdfast-error.ts';
import { KernelError } from '../src/core/kernel/errors/kernel-error.ts';
import { standaloneCommands as clusterCommands } from '../src/plugins/cluster/standalone.ts';

const root = new URL('../', import.meta.url);

/** What the plugins of `plugins.config.ts` declare, with an empty environment: every one on embedded defaults. */
export async function deliveredRegistrations(): Promise<Registrations> {
  const { plugins } = await loadConfig({ file: new URL('plugins.config.ts', root).pathname, env: {} });
  return new PluginHost(plugins).register();
}

/** The definitions of every plugin of this repository, also of those that the delivered configuration does not list. */
export async function ownDefinitions(): Promise<readonly PluginDefinition[]> {
  const folders = readdirSync(new URL('src/plugins/', root)).sort();
  const modules = await Promise.all(folders.map((name) => import(`../src/plugins/${name}/index.ts`)));
  return modules.flatMap((module) =>
    Object.values<object>(module).flatMap((value) =>
      'definition' in value ? [value.definition as PluginDefinition] : [],
    ),
  );
}

/** The error tables of the kernel, the host and the command line, each of one error class. */
export const CORE_TABLES = [KernelError.table, HostError.table, CliError.table];

/** The errors of kernel, host, command line and plugins, by code. */
export function errorTables(definitions: readonly PluginDefinition[]): Record<string, ErrorEntry> {
  return Object.assign({}, ...CORE_TABLES, ...definitions.flatMap((definition) => errorTablesOf(definition)));
}

/** @returns the text of every page, by its path from the root of the project */
export function referencePages(
  registrations: Registrations,
  definitions: readonly PluginDefinition[],
): Record<string, string> {
  return {
    'docs/reference/commands.md': commandsPage(registrations),
    'docs/reference/errors.md': errorsPage(errorTables(definitions)),
    'docs/reference/graph.md': graphPage(registrations),
    'docs/reference/plugins.md': pluginsPage(registrations),
    'docs/reference/surfaces.md': surfacesPage(registrations),
    'docs/reference/variables.md': variablesPage(definitions),
  };
}

const GENERATED = 'Written by `npm run docs` from what the code declares.';

function commandsPage(registrations: Registrations): string {
  const listed = [
    ...coreCommands.map((command) => ({ heading: 'Runtime and log', command })),
    ...listedOf(registrations),
    // The plugin is not in the delivered configuration unless a variable says so; its commands are always there.
    ...clusterCommands.map((command) => ({ heading: 'Several hosts', command })),
  ];
  const sections = Map.groupBy(listed, ({ heading }) => heading.replace(/:$/, ''));
  return page(
    'Commands',
    `${GENERATED} Each command also takes \`--json\`, \`--data-dir DIR\`, \`--config FILE\` and \`--help\`.`,
    'Exit codes: 0 success; 1 a check or the work failed; 2 wrong usage or configuration.',
    ...[...sections].flatMap(([heading, rows]) => [
      '',
      `## ${heading}`,
      ...rows.flatMap(({ command }) => ['', ...commandSection(command)]),
    ]),
  );
}

function commandSection({ name, summary, example, flags = [] }: CommandDefinition): string[] {
  return [
    `### ${commandWords(name).join(' ')}`,
    '',
    `\`holdfast ${name}${flags.length > 0 ? ' [options]' : ''}\``,
    '',
    `${summary}.`,
    '',
    `    ${example}`,
    ...(flags.length > 0 ? ['', ...table(['option', ''], flags.map(flagCells))] : []),
  ];
}

function flagCells({
  flags,
  summary,
  default: value,
  repeatable,
}: NonNullable<CommandDefinition['flags']>[number]) {
  const notes = [
    ...(value === undefined ? [] : [`default: ${value}`]),
    ...(repeatable && !summary.includes('several times') ? ['may be given several times'] : []),
  ];
  return [`\`${flags}\``, notes.length > 0 ? `${summary} (${notes.join('; ')})` : summary];
}

/** One section for each area of codes, in alphabetical order; within it the table's own order. */
function errorsPage(entries: Readonly<Record<string, ErrorEntry>>): string {
  const areas = Map.groupBy(Object.entries(entries), ([code]) => code.split('_')[1]?.toLowerCase() ?? '');
  const names = [...areas.keys()].sort();
  return page(
    'Errors',
    `${GENERATED} Words in {braces} are filled in when the error is met; the status is that of an HTTP request`,
    'which ends with it.',
    '',
    names.map((name) => `[${name}](#${name})`).join(' · '),
    ...names.flatMap((name) => [
      '',
      `## ${name}`,
      ...(areas.get(name) ?? []).flatMap(([code, { what, remedy, status }]) => [
        '',
        `### ${code}`,
        '',
        `${what} (${status})`,
        '',
        `**What to do:** ${remedy}`,
      ]),
    ]),
  );
}

function graphPage(registrations: Registrations): string {
  return page(
    'What is connected',
    `${GENERATED} It is the graph of \`plugins.config.ts\` as it is delivered; \`holdfast graph\` draws that of your own.`,
    '',
    '```mermaid',
    ...mermaid(graphOf(registrations)),
    '```',
  );
}

function pluginsPage(registrations: Registrations): string {
  const ownedBy = <T extends { readonly owner: string }>(
    all: readonly T[],
    owner: string,
    name: (one: T) => string,
  ) => listOf(all.filter((one) => one.owner === owner).map(name));
  const rows = registrations.plugins.map(({ name, about, provides, requires, wants }) => [
    `\`${name}\``,
    about ? `${about.area}: ${about.what}` : '',
    listOf(provides),
    listOf([...requires, ...wants.map((token) => `${token}?`)]),
    ownedBy(registrations.actors, name, ({ type }) => type),
    about ? `[${about.docs}](../${about.docs})` : '',
  ]);
  return page(
    'Plugins',
    `${GENERATED} These are the plugins of \`plugins.config.ts\` as it is delivered; \`?\` marks what is used where somebody`,
    'provides it. In the place of some: `router-remote` (a router elsewhere) for `router`, `secrets-kv` or `secrets-environment`',
    'for `secrets-folder`; `cluster` joins where one is configured.',
    '',
    ...table(['plugin', 'what it is for', 'provides', 'uses', 'actors', 'docs'], rows),
  );
}

function surfacesPage({ surfaces, listeners }: Registrations): string {
  const rows = [
    ...surfaces.map(({ owner, options: { name, host = '127.0.0.1', port, portVariable } }) => [
      `\`${name}\``,
      `${host}:${port}`,
      `\`${portVariable}\``,
      `\`${owner}\``,
    ]),
    ...listeners.map(({ owner, name }) => [`\`${name}\``, '', '', `\`${owner}\``]),
  ];
  return page(
    'Surfaces',
    `${GENERATED} Everything binds 127.0.0.1 unless it is told otherwise; a surface that is bound elsewhere demands a bearer`,
    'token. Port 0 means any free one; `runtime.json` in the data folder names those that were chosen.',
    '',
    ...table(['surface', 'address', 'variable', 'plugin'], rows),
  );
}

/** Variables that core reads itself. */
const CORE_VARIABLES = {
  HOLDFAST_DATA_DIR:
    'Data folder; `--data-dir` goes before it, `.holdfast` of the working directory is the default.',
  HOLDFAST_SOLE_USER:
    '`1` says that nobody else uses this machine, as in a container: folders that others may write are accepted for secrets and data ([security](../security.md#files-and-folders)).',
};

function variablesPage(definitions: readonly PluginDefinition[]): string {
  const rows = definitions.flatMap(({ name, env = {}, variables = {} }) =>
    [...new Set([...Object.keys(variables), ...Object.keys(env)])].map((variable) => [
      `\`${variable}\``,
      variables[variable] ?? '',
      `\`${name}\``,
      env[variable] === undefined ? '' : `\`${env[variable]}\``,
    ]),
  );
  const core = Object.entries(CORE_VARIABLES).map(([variable, what]) => [`\`${variable}\``, what, '', '']);
  return page(
    'Variables',
    `${GENERATED} A variable goes before the option of \`plugins.config.ts\` that it stands for; an empty one counts as unset. A secret is`,
    'best given as a file of mode 0600.',
    '',
    ...table(['variable', 'what it is for', 'plugin', 'option'], [...core, ...rows]),
  );
}

function page(title: string, ...lines: readonly string[]): string {
  return [`# ${title}`, '', ...lines, ''].join('\n');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [head, head.map(() => '---'), ...rows].map(
    (cells) => `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell.replaceAll('|', '\\|')} `)).join('|')}|`,
  );
}

function listOf(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}
