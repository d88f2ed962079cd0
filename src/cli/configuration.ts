import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { LoadedConfig } from '../core/host/config/load.ts';
import type { ConfiguredPlugin } from '../core/host/plugin/definition.ts';
import type { Registrations } from '../core/host/plugin/registrations.ts';
import type { ActorDefinition } from '../core/kernel/actors/definition.ts';
import { CoreError } from '../core/kernel/errors/core-error.ts';
import { isCoded } from '../core/kernel/errors/holdfast-error.ts';

/** What the command line says of the configuration, and where the command was called. */
export interface ConfigurationSource {
  /** `--config`. */
  readonly file?: string | undefined;
  /** `--data-dir`. */
  readonly dataDir?: string | undefined;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The plugins that the program brings. */
  readonly builtinPlugins?: (() => Promise<readonly ConfiguredPlugin[]>) | undefined;
}

/**
 * The configuration of one call of the command line. It is read when something of it is needed, and once: most
 * commands look at a data folder and need no plugin.
 */
export class Configuration {
  readonly #source: ConfigurationSource;
  #config: Promise<LoadedConfig> | undefined;
  #registrations: Promise<Registrations> | undefined;

  constructor(source: ConfigurationSource) {
    this.#source = source;
  }

  /** @throws HF_CONFIG_* */
  load(): Promise<LoadedConfig> {
    this.#config ??= (async () => {
      const { loadConfig } = await import('../core/host/config/load.ts');
      return loadConfig(this.#source);
    })();
    return this.#config;
  }

  /** What the plugins declare. Nothing is started. @throws HF_CONFIG_*, HF_PLUGIN_* */
  registrations(): Promise<Registrations> {
    this.#registrations ??= (async () => {
      const [{ PluginHost }, { plugins }] = await Promise.all([
        import('../core/host/plugin/host.ts'),
        this.load(),
      ]);
      return new PluginHost(plugins).register();
    })();
    return this.#registrations;
  }

  /**
   * The actors of the plugins; where no configuration names plugins, of those that the program brings.
   *
   * @throws HF_REPLAY_MACHINES there are neither; HF_CONFIG_*, HF_PLUGIN_*
   */
  async actors(): Promise<readonly ActorDefinition[]> {
    try {
      return (await this.registrations()).actors;
    } catch (error) {
      if (!isCoded(error, 'HF_CONFIG_NOT_FOUND')) throw error;
      const { builtinPlugins } = this.#source;
      if (!builtinPlugins || this.#source.file !== undefined) {
        throw new CoreError('HF_REPLAY_MACHINES', { file: error.details.file }, { cause: error });
      }
      return (await this.#builtin(builtinPlugins)).actors;
    }
  }

  /** What the plugins declare that the program brings, with their defaults; undefined where it brings none. */
  async builtin(): Promise<Registrations | undefined> {
    const { builtinPlugins } = this.#source;
    return builtinPlugins && this.#builtin(builtinPlugins);
  }

  async #builtin(plugins: NonNullable<ConfigurationSource['builtinPlugins']>): Promise<Registrations> {
    const { PluginHost } = await import('../core/host/plugin/host.ts');
    return new PluginHost(await plugins()).register();
  }

  /** Whether there is a file to load: the one of `--config`, or the usual one in the working directory. */
  async exists(): Promise<boolean> {
    const { file, cwd } = this.#source;
    if (file !== undefined) return true; // a name that is wrong should be told
    const { CONFIG_FILE } = await import('../core/host/config/load.ts');
    return existsSync(resolve(cwd, CONFIG_FILE));
  }

  /**
   * The data folder as an absolute path. The configuration is loaded only where it is the one that says: a folder
   * can be looked at without it, and when it is broken most of all.
   *
   * @param note told when the configuration could not be asked
   */
  async dataDir(note: (line: string) => void): Promise<string> {
    const { resolveDataDir } = await import('../core/host/config/resolve.ts');
    const fallback = resolveDataDir(this.#source);
    const { dataDir, env } = this.#source;
    if (dataDir || env.HOLDFAST_DATA_DIR || !(await this.exists())) return fallback;
    try {
      return (await this.load()).dataDir;
    } catch (error) {
      if (!existsSync(fallback)) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      note(`The configuration cannot be loaded; taking the data folder ${fallback}. ${reason}`);
      return fallback;
    }
  }
}
