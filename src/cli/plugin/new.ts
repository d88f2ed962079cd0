import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { CONFIG_FILE, loadConfig } from '../../core/host/config/load.ts';
import type { CommandRun } from '../../core/host/plugin/command.ts';
import { PluginHost } from '../../core/host/plugin/host.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { CliError } from '../errors.ts';
import { newConfig, withPlugin } from './config-text.ts';
import { PLUGIN_KINDS, type PluginKind, pluginFiles } from './templates.ts';

const NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
const LONGEST_NAME = 40;

/** `holdfast plugin new <name>`: writes a plugin that works into the project, and lists it in the configuration. */
export const newPlugin: CommandRun = async ([name = ''], flags, { config, print, note }) => {
  const kinds = (Object.keys(PLUGIN_KINDS) as PluginKind[]).filter((kind) => flags[kind] === true);
  const [kind = 'route', second] = kinds;
  if (second)
    throw refused(`choose one of --${kind} and --${second}: a plugin of both begins as one of them`);
  if (!NAME.test(name) || name.length > LONGEST_NAME) {
    throw refused(`${name} is no name of a plugin: small letters, digits and hyphens, e.g. ups-watcher`);
  }
  const file = await configFile(config);
  const folder = join(dirname(file), 'plugins', name);
  if (existsSync(folder)) throw refused(`${folder} exists already`);
  const files = pluginFiles(kind, name);
  mkdirSync(folder, { recursive: true });
  for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text);
  for (const path of Object.keys(files)) print(`written: ${relative(process.cwd(), join(folder, path))}`);

  const id = /export const (\w+) = definePlugin/.exec(files['plugin.ts'] ?? '')?.[1] ?? name;
  const importLine = `import { ${id} } from './plugins/${name}/plugin.ts';`;
  const problem = await list(file, importLine, `${id}()`, kind);
  if (problem === undefined) print(`changed: ${relative(process.cwd(), file)} lists ${id}()`);
  else {
    note(`${relative(process.cwd(), file)} stays as it was: ${problem}. Add to it:`);
    note(`  ${importLine}`);
    note(`  ${id}(), // in plugins: [...]`);
  }
  print('');
  print(`Next: holdfast plugin test ${name}, then holdfast start.`);
  return problem === undefined ? 0 : 1;
};

/** The file of the project; one that does not exist yet is named all the same. */
async function configFile(config: () => Promise<{ readonly file: string }>): Promise<string> {
  try {
    return (await config()).file;
  } catch (error) {
    if (isCoded(error, 'HF_CONFIG_NOT_FOUND')) return String(error.details.file ?? resolve(CONFIG_FILE));
    throw error;
  }
}

/** Lists the plugin in the file. @returns why the file could not be changed; undefined when it was */
async function list(
  file: string,
  importLine: string,
  call: string,
  kind: PluginKind,
): Promise<string | undefined> {
  const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined;
  const after =
    before === undefined ? firstConfig(importLine, call, kind) : withPlugin(before, importLine, call);
  if (after === undefined) return 'its imports and its list of plugins were not found';
  writeFileSync(file, after);
  try {
    const { plugins } = await loadConfig({ file, fresh: true });
    new PluginHost(plugins).register();
    return undefined;
  } catch (error) {
    if (!isCoded(error)) throw error;
    if (before !== undefined) writeFileSync(file, before);
    return `with the plugin it could not be loaded: ${error.what.replace(/\.$/, '')}`;
  }
}

/** A project that has no configuration yet gets the console too, so that `holdfast status` has whom to ask. */
function firstConfig(importLine: string, call: string, kind: PluginKind): string {
  const console = "import { consolePlugin } from 'holdfast/plugins/console';";
  const gateway = "import { gateway } from 'holdfast/plugins/gateway';";
  return kind === 'route'
    ? newConfig([console, gateway, importLine], ['consolePlugin()', 'gateway()', call])
    : newConfig([console, importLine], ['consolePlugin()', call]);
}

const refused = (reason: string): Error =>
  new CliError('HF_CLI_PLUGIN', { reason: reason.replace(/^./, (letter) => letter.toUpperCase()) });
