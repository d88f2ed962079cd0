import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { foundDataDir, resolveDataDir } from '../core/host/config/data-dir.ts';
import type { LoadedConfig } from '../core/host/config/load.ts';
import { HostError } from '../core/host/errors/host-error.ts';
import { maskText } from '../core/host/logging/mask-text.ts';
import type { ExportForms, HostLogs, OpenHostLogs } from '../core/host/plugin/command.ts';
import type { ConfiguredPlugin, StoppedReports } from '../core/host/plugin/definition.ts';
import type { Registrations } from '../core/host/plugin/registrations.ts';
import type { ActorDefinition, RecordWords } from '../core/kernel/actors/definition.ts';
import { isCoded } from '../core/kernel/errors/holdfast-error.ts';
import { CliError } from './errors.ts';

/**
 * What reads what the program's own features left in a log, each by the feature's name, with which its actor types begin.
 * Nothing of it loads a plugin.
 */
export interface LogFeatures {
  readonly words: ReadonlyMap<string, () => Promise<RecordWords>>;
  readonly stoppedReports: ReadonlyMap<string, () => Promise<StoppedReports>>;
  readonly exportForms: ReadonlyMap<string, () => Promise<ExportForms>>;
  readonly hostLogs?: ReadonlyMap<string, () => Promise<OpenHostLogs>>;
}

/** Where one call of the command line finds its configuration. */
export interface ConfigurationSource {
  /** `--config`. */
  readonly file?: string | undefined;
  /** `--data-dir`. */
  readonly dataDir?: string | undefined;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The plugins that the program brings. */
  readonly builtinPlugins?: (() => Promise<readonly ConfiguredPlugin[]>) | undefined;
  readonly logFeatures?: LogFeatures | undefined;
}

/**
 * The configuration of one call of the command line. It is loaded once, and only when something of it is needed: most
 * commands read a data folder and need no plugin.
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
   * What the plugins declare; where there is no configuration, what those declare that the program brings.
   *
   * @throws HF_CONFIG_*, HF_PLUGIN_*
   */
  async declared(): Promise<Registrations> {
    try {
      return await this.registrations();
    } catch (error) {
      const isAbsent = isCoded(error, 'HF_CONFIG_NOT_FOUND') && this.#source.file === undefined;
      const builtin = isAbsent ? await this.builtin() : undefined;
      if (!builtin) throw error;
      return builtin;
    }
  }

  /**
   * The actors of those plugins.
   *
   * @throws HF_REPLAY_MACHINES there is no configuration, and the program brings no plugins; HF_CONFIG_*, HF_PLUGIN_*
   */
  async actors(): Promise<readonly ActorDefinition[]> {
    try {
      return (await this.declared()).actors;
    } catch (error) {
      if (!isCoded(error, 'HF_CONFIG_NOT_FOUND')) throw error;
      throw new CliError('HF_REPLAY_MACHINES', { file: error.details.file }, { cause: error });
    }
  }

  /** As `CommandContext.wordsOf` describes. @throws HF_CONFIG_*, HF_PLUGIN_* */
  async wordsOf(types: Iterable<string>): Promise<RecordWords> {
    const { features, others } = await this.#featuresOf(types);
    const { words } = this.#source.logFeatures ?? {};
    const own = await Promise.all(features.map((feature) => words?.get(feature)?.()));
    const actors = others ? (await this.declared()).actors : [];
    const declared = actors.map(({ type, describe }) => [type, describe] as const);
    return Object.assign(Object.fromEntries(declared), ...own);
  }

  /** As `CommandContext.stoppedReports` describes. @throws HF_CONFIG_*, HF_PLUGIN_* */
  async stoppedReports(types: Iterable<string>): Promise<StoppedReports> {
    const { features, others } = await this.#featuresOf(types);
    const { stoppedReports } = this.#source.logFeatures ?? {};
    const own = await Promise.all(features.map((feature) => stoppedReports?.get(feature)?.()));
    const health = others ? (await this.declared()).health : [];
    const declared = health.flatMap(({ name, stopped }) => (stopped ? [[name, stopped] as const] : []));
    return Object.assign(Object.fromEntries(declared), ...own);
  }

  /** As `CommandContext.exportForms` describes. */
  async exportForms(): Promise<ExportForms> {
    const { exportForms = new Map<string, () => Promise<ExportForms>>() } = this.#source.logFeatures ?? {};
    return Object.assign({}, ...(await Promise.all(Array.from(exportForms.values(), (load) => load()))));
  }

  /** As `CommandContext.hostLogs` describes. */
  async hostLogs(): Promise<HostLogs> {
    for (const load of this.#source.logFeatures?.hostLogs?.values() ?? []) {
      const open = await load();
      return open({ config: () => this.load() }, this.#source.env);
    }
    const reason = '--host reads the logs of several hosts, a feature that this program lacks.';
    throw new HostError('HF_CLI_USAGE', { reason, command: 'log list' });
  }

  /** The program's features that these actor types name, and whether the configuration has to be loaded for other types. */
  async #featuresOf(types: Iterable<string>): Promise<{ features: string[]; others: boolean }> {
    const { logFeatures } = this.#source;
    const named = [...new Set(Array.from(types, (type) => type.split('.')[0] ?? type))];
    const isOwn = (feature: string) => logFeatures?.words.has(feature) === true;
    const others = !named.every(isOwn);
    // Without a configuration there is nothing but what the program brings.
    return { features: named.filter(isOwn), others: others && (!logFeatures || (await this.exists())) };
  }

  /** What the plugins declare that the program brings, with their defaults; undefined where it brings none. */
  async builtin(): Promise<Registrations | undefined> {
    const { builtinPlugins } = this.#source;
    if (!builtinPlugins) return undefined;
    const { PluginHost } = await import('../core/host/plugin/host.ts');
    return new PluginHost(await builtinPlugins()).register();
  }

  /** Whether there is a file to load: the one of `--config`, or the usual one in the working directory. */
  async exists(): Promise<boolean> {
    const { file, cwd } = this.#source;
    if (file !== undefined) return true; // a wrong name is reported when it is loaded
    const { CONFIG_FILE } = await import('../core/host/config/load.ts');
    return existsSync(resolve(cwd, CONFIG_FILE));
  }

  /** The data folder by flag and variable, else the usual one. */
  async dataDirWithoutFile(): Promise<string> {
    return resolveDataDir(this.#source);
  }

  /**
   * The data folder as an absolute path. The configuration is loaded only where neither a flag nor a variable names the
   * folder, so that a folder can be inspected while the configuration is broken.
   *
   * @param note receives a line when the configuration could not be loaded
   * @throws HF_CONFIG_DATA_OWNER nobody named it, and somebody but root and this user could have written it
   */
  async dataDir(note: (line: string) => void): Promise<string> {
    const fallback = await this.dataDirWithoutFile();
    const { dataDir, env, file } = this.#source;
    if (dataDir || env.HOLDFAST_DATA_DIR) return fallback;
    if (!(await this.exists())) return foundDataDir(fallback);
    try {
      const configured = (await this.load()).dataDir;
      return configured === fallback && file === undefined ? foundDataDir(fallback) : configured;
    } catch (error) {
      if (!existsSync(fallback) || isCoded(error, 'HF_CONFIG_DATA_OWNER')) throw error;
      const reason = maskText(error instanceof Error ? error.message : String(error));
      foundDataDir(fallback);
      note(`The configuration cannot be loaded; using the data folder ${fallback}. ${reason}`);
      return fallback;
    }
  }
}
