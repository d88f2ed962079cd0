import { dirname, resolve } from 'node:path';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { isObject } from '../../kernel/json.ts';
import { parseDuration } from '../duration.ts';
import { HostError } from '../errors/host-error.ts';
import type { ConfiguredPlugin, PluginEntry } from '../plugin/definition.ts';
import {
  archiveFolder,
  DEFAULT_LIMITS,
  type RetentionSettings,
  USUAL_RESERVE_BYTES,
} from '../retention/settings.ts';
import { parseSize } from '../size.ts';
import type { WitnessSettings } from '../witness/settings.ts';
import { type ConfigSource, resolveDataDir } from './data-dir.ts';
import { type Config, type DataOptions, settingsSchema } from './define-config.ts';
import { type Environment, overrideFromEnvironment } from './environment.ts';
import { problemsOf } from './problem.ts';

/** A configuration that has been validated, defaults and environment included. */
export interface ResolvedConfig {
  readonly plugins: readonly ConfiguredPlugin[];
  /** Absolute path of the data folder; it need not exist yet. */
  readonly dataDir: string;
  /** Milliseconds that a batched record may wait for its commit. */
  readonly lingerMs?: number;
  /** Records between two signatures of the log. */
  readonly signEvery?: number;
  /** Milliseconds that the disk may take for one commit. */
  readonly patienceMs?: number;
  /** Where the signed heads of the log go. */
  readonly witness?: WitnessSettings;
  /** Room on the disk that is kept for the log, bytes; absent for none. */
  readonly reserveBytes?: number;
  /** How much of the log is kept; absent when nothing is archived or deleted automatically. */
  readonly retention?: RetentionSettings;
}

/**
 * Validates a configuration as a whole and lays the environment over it.
 *
 * @throws HF_CONFIG_PLUGIN, HF_CONFIG_SETTING, HF_CONFIG_OPTION, HF_CONFIG_ENV one thing is wrong
 * @throws HF_CONFIG_INVALID several things are wrong; all are listed
 * @public
 */
export function resolveConfig(config: Config, source: ConfigSource = {}): ResolvedConfig {
  const file = source.file ?? 'the configuration';
  const env = source.env ?? process.env;
  const problems: HoldfastError[] = [];

  const settings = settingsSchema.safeParse(config);
  for (const { option, reason, hint } of problemsOf(settingsSchema, config, settings.error?.issues ?? [])) {
    problems.push(new HostError('HF_CONFIG_SETTING', { file, setting: option, reason, hint }));
  }
  const plugins: ConfiguredPlugin[] = [];
  for (const [index, entry] of (Array.isArray(config.plugins) ? config.plugins : []).entries()) {
    const reason = notAnEntry(entry);
    if (reason === undefined) plugins.push(...configure(entry, env, file, problems));
    else problems.push(new HostError('HF_CONFIG_PLUGIN', { file, reason: `plugins[${index}] ${reason}` }));
  }
  refuse(problems, file);
  const { data } = config;
  const dataDir = resolveDataDir({ ...source, env }, data?.dir);
  return {
    plugins,
    dataDir,
    ...(data?.lingerMs !== undefined && { lingerMs: data.lingerMs }),
    ...(data?.signEvery !== undefined && { signEvery: data.signEvery }),
    ...(data?.patienceMs !== undefined && { patienceMs: data.patienceMs }),
    ...(data?.witness && { witness: witnessOf(data.witness, source) }),
    ...(data?.reserve !== false && { reserveBytes: reserveOf(data?.reserve) }),
    ...(data?.retention !== false && { retention: retentionOf(data?.retention ?? {}, dataDir, source) }),
  };
}

function witnessOf(
  witness: NonNullable<DataOptions['witness']>,
  { file, cwd = process.cwd() }: ConfigSource,
): WitnessSettings {
  const absolute = (path: string) => resolve(cwd, file ? dirname(file) : '.', path);
  if ('file' in witness) return { file: absolute(witness.file) };
  if ('folder' in witness) {
    const { folder, keepDays } = witness;
    return { folder: absolute(folder), ...(keepDays !== undefined && { keepDays }) };
  }
  const { url, tokenFile } = witness;
  return { url, ...(tokenFile !== undefined && { tokenFile: absolute(tokenFile) }) };
}

const reserveOf = (size: string | undefined): number =>
  (size === undefined ? undefined : parseSize(size)) ?? USUAL_RESERVE_BYTES;

function retentionOf(
  { olderThan, keepSize, keepArchives, archive }: Exclude<NonNullable<DataOptions['retention']>, false>,
  dataDir: string,
  { file, cwd = process.cwd() }: ConfigSource,
): RetentionSettings {
  const limit = (
    text: string | false | undefined,
    parse: (text: string) => number | undefined,
    usual: number,
  ) => (text === undefined ? usual : text === false ? undefined : parse(text));
  return {
    olderThanMs: limit(olderThan, parseDuration, DEFAULT_LIMITS.olderThanMs),
    keepBytes: limit(keepSize, parseSize, DEFAULT_LIMITS.keepBytes),
    keepArchiveBytes: limit(keepArchives, parseSize, DEFAULT_LIMITS.keepArchiveBytes),
    folder:
      archive === undefined ? archiveFolder(dataDir) : resolve(cwd, file ? dirname(file) : '.', archive),
  };
}

function configure(
  { definition, options }: PluginEntry,
  env: Environment,
  file: string,
  problems: HoldfastError[],
): ConfiguredPlugin[] {
  const overridden = overrideFromEnvironment(definition, options, env, file);
  problems.push(...overridden.problems);
  const parsed = definition.options.safeParse(overridden.options);
  if (parsed.success) return [{ definition, options: parsed.data as Record<string, unknown> }];
  for (const problem of problemsOf(definition.options, overridden.options, parsed.error.issues)) {
    const { option, reason, hint } = problem;
    problems.push(new HostError('HF_CONFIG_OPTION', { file, plugin: definition.name, option, reason, hint }));
  }
  return [];
}

/** Why something in the list of plugins is no plugin; a configuration may be plain JavaScript, without types. */
function notAnEntry(entry: unknown): string | undefined {
  if (typeof entry === 'function' && 'definition' in entry && isObject(entry.definition)) {
    const name = String(entry.definition.name);
    return `is the plugin ${name} itself: call it, as in ${name}()`;
  }
  const whole =
    isObject(entry) && isObject(entry.definition) && typeof entry.definition.register === 'function';
  return whole ? undefined : 'is not a plugin made with definePlugin';
}

/** @throws the one problem itself, or HF_CONFIG_INVALID with all of them */
function refuse(problems: readonly HoldfastError[], file: string): void {
  const [first] = problems;
  if (!first) return;
  if (problems.length === 1) throw first;
  const list = problems.map(({ message, details }) => `\n  - ${message}${details.hint ?? ''}`).join('');
  throw new HostError(
    'HF_CONFIG_INVALID',
    { file, count: problems.length, list },
    { cause: new AggregateError(problems) },
  );
}
