// `npm run docs`: writes the generated parts of docs/. Tests fail while one of them is not what this would write.
import { readFileSync, writeFileSync } from 'node:fs';
import { coreCommands } from '../src/cli/commands/index.ts';
import { commandsPage } from '../src/cli/commands-page.ts';
import { graphSection } from '../src/cli/graph/index.ts';
import { listedOf } from '../src/cli/program.ts';
import { loadConfig } from '../src/core/host/config/load.ts';
import { PluginHost } from '../src/core/host/plugin/host.ts';
import { errorsPage } from '../src/core/kernel/errors/page.ts';
import { errorTable } from '../src/core/kernel/errors/table.ts';

writeFileSync(new URL('../docs/errors.md', import.meta.url), errorsPage(errorTable));

const architecture = new URL('../docs/architecture.md', import.meta.url);
const { plugins } = await loadConfig({
  file: new URL('../plugins.config.ts', import.meta.url).pathname,
  env: {},
});
const registrations = new PluginHost(plugins).register();
const commands = [
  ...coreCommands.map((command) => ({ heading: 'Commands:', command })),
  ...listedOf(registrations),
];
writeFileSync(new URL('../docs/commands.md', import.meta.url), commandsPage(commands));
writeFileSync(architecture, graphSection(readFileSync(architecture, 'utf8'), registrations));
console.log('docs/errors.md, docs/commands.md and the table and graph of docs/architecture.md are fresh');
