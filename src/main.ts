import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, extname } from 'node:path';
import type { z } from 'zod';
import type { LogFeatures } from './cli/configuration.ts';
import { runHere } from './cli/run.ts';
import { declareSecretFields, type SecretFields } from './core/host/logging/secret-fields.ts';
import type { CommandDefinition, ExportForms, OpenHostLogs } from './core/host/plugin/command.ts';
import type { ConfiguredPlugin, Plugin, StoppedReports } from './core/host/plugin/definition.ts';
import type { RecordWords } from './core/kernel/actors/definition.ts';

/** Every folder below it is a feature that the program brings; its `index.ts` exports the plugins. */
const PLUGINS = new URL('./plugins/', import.meta.url);
/** `.ts` in a checkout, `.js` in the package. */
const EXTENSION = extname(import.meta.url);

/**
 * The plugins that the program brings, each with its default options and without environment: their machines read any log
 * of this release where no configuration is, and their commands reach an instance whose configuration is broken. Of
 * several plugins that provide the same, such as a router here and one elsewhere, the first by name is taken.
 */
export async function builtinPlugins(): Promise<readonly ConfiguredPlugin[]> {
  const [{ resolveConfig }, ...features] = await Promise.all([
    import('./core/host/config/resolve.ts'),
    ...filesOfPlugins('index').map((file): Promise<Record<string, unknown>> => import(file)),
  ]);
  const provided = new Set<string>();
  const plugins = features
    .flatMap((exported) => Object.values(exported))
    .filter(isPlugin)
    .filter(({ definition: { provides = [] } }) => {
      const names = provides.map(({ name }) => name);
      if (names.some((name) => provided.has(name))) return false;
      for (const name of names) provided.add(name);
      return true;
    });
  return resolveConfig({ plugins: plugins.map((plugin) => plugin()) }, { env: {} }).plugins;
}

/**
 * What reads the logs of the runtime and of those plugins' features: `words.ts` of a feature describes its records,
 * `stopped-reports.ts` reports of a stopped instance, `export-forms.ts` writes an export in another form, and `host-logs.ts` reads
 * the logs of other hosts. None of them
 * loads what a running plugin needs.
 */
export function logFeatures(): LogFeatures {
  return {
    words: new Map([
      ['runtime', async () => (await import('./core/host/lifecycle/records.ts')).words],
      ...loadersOf('words', async (file) => ((await import(file)) as Words).words),
    ]),
    stoppedReports: new Map([
      ['runtime', async () => (await import('./core/host/integrity/records.ts')).stoppedReports],
      ...loadersOf('stopped-reports', async (file) => ((await import(file)) as Reports).stoppedReports),
    ]),
    exportForms: new Map(
      loadersOf('export-forms', async (file) => ((await import(file)) as Forms).exportForms),
    ),
    hostLogs: new Map(loadersOf('host-logs', async (file) => ((await import(file)) as Logs).openHostLogs)),
  };
}

interface Words {
  readonly words: RecordWords;
}

interface Reports {
  readonly stoppedReports: StoppedReports;
}

interface Logs {
  readonly openHostLogs: OpenHostLogs;
}

interface Forms {
  readonly exportForms: ExportForms;
}

/** A loader for each feature that has a file of that name, by the feature's name. */
function loadersOf<T>(name: string, load: (file: string) => Promise<T>): [string, () => Promise<T>][] {
  return filesOfPlugins(name).map((file) => [basename(dirname(file)), () => load(file)]);
}

/** The commands of those plugins that need no configuration; each plugin declares them in its `standalone.ts`. */
export async function standaloneCommands(): Promise<readonly CommandDefinition[]> {
  const modules = await Promise.all(
    filesOfPlugins('standalone').map((file): Promise<Standalone> => import(file)),
  );
  return modules.flatMap(({ standaloneCommands }) => standaloneCommands);
}

interface Standalone {
  readonly standaloneCommands: readonly CommandDefinition[];
}

/**
 * What the plugins that the program brings declare secret; each does so in its `secret-fields.ts`, which loads nothing
 * else. A log may hold such fields whatever plugins the command at hand loads.
 */
export async function secretFields(): Promise<readonly SecretFields[]> {
  const modules = await Promise.all(
    filesOfPlugins('secret-fields').map((file): Promise<Secrets> => import(file)),
  );
  return modules.map(({ secretFields }) => secretFields);
}

interface Secrets {
  readonly secretFields: SecretFields;
}

function filesOfPlugins(name: string): string[] {
  return readdirSync(PLUGINS)
    .sort()
    .map((folder) => new URL(`${folder}/${name}${EXTENSION}`, PLUGINS))
    .filter((file) => existsSync(file))
    .map(({ href }) => href);
}

function isPlugin(exported: unknown): exported is Plugin<z.ZodObject> {
  return typeof exported === 'function' && 'definition' in exported;
}

/**
 * The command line; `bin/holdfast.js` calls it on a Node that is new enough.
 *
 * @param argv the arguments after the program's name
 * @returns the exit code: 0 well, 1 the check or the work failed, 2 usage or configuration
 */
export async function main(argv: string[]): Promise<number> {
  for (const fields of await secretFields()) declareSecretFields(fields);
  return runHere(argv, { builtinPlugins, logFeatures: logFeatures(), standaloneCommands });
}
