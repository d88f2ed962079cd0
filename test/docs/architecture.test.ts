import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { coreCommands } from '../../src/cli/commands/index.ts';
import { commandsPage } from '../../src/cli/commands-page.ts';
import { graphSection } from '../../src/cli/graph/index.ts';
import { listedOf } from '../../src/cli/program.ts';
import { loadConfig } from '../../src/core/host/config/load.ts';
import { PluginHost } from '../../src/core/host/plugin/host.ts';

const root = new URL('../../', import.meta.url);
const text = (path: string): string => readFileSync(new URL(path, root), 'utf8');
const filesOf = (folder: string, ending: string): string[] =>
  readdirSync(new URL(folder, root), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith(ending))
    .map((name) => `${folder}/${name}`);

const { plugins } = await loadConfig({ file: new URL('plugins.config.ts', root).pathname, env: {} });
const registrations = new PluginHost(plugins).register();
const pages = () => ['README.md', ...filesOf('docs', '.md')];

test('[C11] table and graph of docs/architecture.md are what the plugins declare, and no plugin is left out', (t) => {
  const page = text('docs/architecture.md');
  t.is(page, graphSection(page, registrations), 'run `npm run docs`');
  const left = readdirSync(new URL('src/plugins', root)).filter((name) => !page.includes(`\`${name}\``));
  t.deepEqual(left, []);
  for (const { name, about } of registrations.plugins) {
    t.truthy(about, `${name} says what it is for`);
    t.notThrows(() => text(`docs/${about?.docs}`), `the page of ${name}`);
  }
});

test('[C14] docs/commands.md has every command with its usage, and README names each', (t) => {
  const core = coreCommands.map((command) => ({ heading: 'Commands:', command }));
  t.is(text('docs/commands.md'), commandsPage([...core, ...listedOf(registrations)]), 'run `npm run docs`');
  const rows = text('README.md')
    .split('\n')
    .filter((line) => line.startsWith('| `'));
  const unnamed = [...coreCommands, ...registrations.commands]
    .map(({ name }) => name.replace(/ *[<[].*/, '').split(' '))
    .filter(([group = '', ...rest]) => {
      const last = rest.at(-1);
      const isNamed = (row: string) =>
        row.includes(`\`${group}`) && (last === undefined || new RegExp(`[\` ]${last}[\` ]`).test(row));
      return !rows.some(isNamed);
    });
  t.deepEqual(unnamed, []);
});

test('[C11] every variable of ours that the sources name is in README or a page of docs', (t) => {
  const known = pages().map(text).join('\n');
  // HOLDFAST_RELAUNCHED of bin/ is the launcher's word to itself.
  const named = [...filesOf('src', '.ts'), 'plugins.config.ts']
    .flatMap((file) => text(file).match(/\bHOLDFAST_[A-Z0-9_]*[A-Z0-9]\b/g) ?? [])
    .filter((name) => !known.includes(name));
  t.deepEqual([...new Set(named)], []);
});
