import { existsSync, statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { dirname, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isCoded } from '../../kernel/errors/holdfast-error.ts';
import { isObject } from '../../kernel/json.ts';
import { whoCouldReplace } from '../../kernel/ownership.ts';
import { HostError } from '../errors/host-error.ts';
import type { ConfigSource } from './data-dir.ts';
import type { Config } from './define-config.ts';
import { type ResolvedConfig, resolveConfig } from './resolve.ts';

/** The file looked for in the working directory. */
export const CONFIG_FILE = 'plugins.config.ts';

/** What a configuration file asks for, with every default filled in. @public */
export interface LoadedConfig extends ResolvedConfig {
  /** Absolute path of the file. */
  readonly file: string;
}

export interface LoadSource extends ConfigSource {
  /** Reads the file again even when this process has loaded it; what it imports stays as it was loaded. */
  readonly fresh?: boolean | undefined;
}

let loads = 0;

/**
 * Finds `plugins.config.ts` in the working directory (or takes `source.file`, from `--config`), imports and
 * validates it.
 *
 * @throws HF_CONFIG_NOT_FOUND there is no such file
 * @throws HF_CONFIG_OWNER it was found, not named, and somebody but root and this user could have written it
 * @throws HF_CONFIG_LOAD it cannot be imported, or exports no configuration
 * @throws what `resolveConfig` throws
 * @public
 */
export async function loadConfig(source: LoadSource = {}): Promise<LoadedConfig> {
  const file = resolve(source.cwd ?? process.cwd(), source.file ?? CONFIG_FILE);
  if (!existsSync(file) || !statSync(file).isFile()) throw new HostError('HF_CONFIG_NOT_FOUND', { file });
  if (source.file === undefined) mayRun(file);
  const config = await importConfig(file, source.fresh === true);
  return { file, ...resolveConfig(config, { ...source, file }) };
}

/** A configuration is code. Git's rule for `safe.directory`: what merely lies in the working directory must be ours. @throws HF_CONFIG_OWNER */
function mayRun(file: string): void {
  const reason = whoCouldReplace(dirname(file)) ?? whoCouldReplace(file);
  if (reason !== undefined) throw new HostError('HF_CONFIG_OWNER', { file, reason });
}

async function importConfig(file: string, fresh: boolean): Promise<Config> {
  serveOwnModules();
  let module: { readonly default?: unknown };
  try {
    loads += 1;
    module = await import(`${pathToFileURL(file).href}${fresh ? `?fresh=${loads}` : ''}`);
  } catch (error) {
    if (isCoded(error)) throw error;
    throw new HostError('HF_CONFIG_LOAD', { file, reason: reasonOf(error, file) }, { cause: error });
  }
  if (!isConfig(module.default)) {
    const reason = 'it has no `export default defineConfig({ plugins: [...] })`';
    throw new HostError('HF_CONFIG_LOAD', { file, reason });
  }
  return module.default;
}

/** The shape that `defineConfig` returns; the options of plugins are checked by their own schemas. */
function isConfig(value: unknown): value is Config {
  return isObject(value) && 'plugins' in value;
}

/** The failure of an import in one line. Only the stack shows whether it is in this file or in an imported one. */
function reasonOf(error: unknown, file: string): string {
  if (!(error instanceof Error)) return String(error);
  const text =
    error.message
      .replace(/\?fresh=\d+/g, '')
      .split('\n')[0]
      ?.trim()
      .replace(/\.$/, '') ?? '';
  const [, place = '', line] =
    /(?:^|[\s(]|file:\/\/)(\/[^\s():]+):(\d+)/m.exec(error.stack?.replace(/\?fresh=\d+/g, '') ?? '') ?? [];
  // A module that is not found was looked for by this folder; its message names who wanted it.
  if (line === undefined || place.startsWith(import.meta.dirname)) return text;
  return `${text} (${place === file ? 'line ' : `${place}:`}${line})`;
}

/** `src/` in a checkout, `dist/` in the published package. */
const ROOT = new URL('../../../', import.meta.url);
const EXTENSION = import.meta.url.endsWith('.ts') ? '.ts' : '.js';
/** Import specifiers of this package: `holdfast` and the sub-paths that it exports. */
const OWN_SPECIFIER = /^holdfast(?:\/(machines|testing|plugins\/[a-z0-9-]+))?$/;

/** Files behind sub-paths that are not `<sub-path>/index`, as in the `exports` of package.json. */
const ENTRY_FILES: Readonly<Record<string, string>> = {
  machines: 'machines/effect',
  testing: 'core/host/testing/index',
};

/** The name of a package, with or without a path in it: no relative path and no URL. */
const PACKAGE_SPECIFIER = /^(@[^/]+\/)?[^./:]+(\/|$)/;

let isRegistered = false;

/**
 * Makes imports work in a configuration outside of this installation, from then on and for the whole process:
 *
 * - `holdfast` and its sub-paths resolve to the modules that this process runs. A second copy of the package would have
 *   classes and tokens of its own, so its plugins would not fit this runtime.
 * - A package that such a file imports and does not have installed, e.g. `zod`, resolves to the one that is installed here.
 */
export function serveOwnModules(): void {
  if (isRegistered) return;
  isRegistered = true;
  registerHooks({
    resolve(specifier, context, next) {
      const ownUrl = urlOfOwnModule(specifier);
      if (ownUrl) return next(ownUrl, context);
      try {
        return next(specifier, context);
      } catch (error) {
        const isOutside = !context.parentURL?.startsWith(new URL('..', ROOT).href);
        if (!isOutside || !PACKAGE_SPECIFIER.test(specifier)) throw error;
        return next(specifier, { ...context, parentURL: import.meta.url });
      }
    },
  });
}

/** @returns undefined for a specifier of anything else */
function urlOfOwnModule(specifier: string): string | undefined {
  const [match, path = '.'] = OWN_SPECIFIER.exec(specifier) ?? [];
  if (match === undefined) return undefined;
  return new URL(`${ENTRY_FILES[path] ?? `${path}/index`}${EXTENSION}`, ROOT).href;
}
