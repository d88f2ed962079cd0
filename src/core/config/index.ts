/**
 * Configuration: what `plugins.config.ts` may say, how it is found, validated and overridden by the environment,
 * and where the data folder is. Imports errors and the plugin contract; the runtime and the command line import it.
 */
export { ConfigFile } from './config-file.ts';
export { type Config, type DataOptions, defineConfig } from './define-config.ts';
export { CONFIG_FILE, type LoadedConfig, loadConfig } from './load.ts';
export { type ConfigSource, type ResolvedConfig, resolveConfig, resolveDataDir } from './resolve.ts';
