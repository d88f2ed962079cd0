import type { styleText } from 'node:util';
import type { ActorDefinition, RecordWords } from '../../kernel/actors/definition.ts';
import type { PortableHeader } from '../../kernel/log/portable/format.ts';
import type { SqliteReader } from '../../kernel/log/sqlite-reader.ts';
import type { RetentionSettings } from '../retention/settings.ts';
import type { WitnessSettings } from '../witness/settings.ts';
import type { ConfiguredPlugin, StoppedReports } from './definition.ts';
import type { Registrations } from './registrations.ts';

/** A colour or face of `util.styleText`, or several. */
export type Format = Parameters<typeof styleText>[0];
export type Colour = Extract<Format, string>;

/** Where output goes, and what it may look like. */
export interface Terminal {
  /** Writes to standard output, as it is. */
  readonly out: (text: string) => void;
  /** Writes to standard error, as it is. */
  readonly err: (text: string) => void;
  /** Whether a person watches standard output. */
  readonly interactive: boolean;
  /** Characters in a line. */
  readonly columns: number;
  /** Colours a text for standard output, where a terminal can show colours and NO_COLOR is not set. */
  readonly paint: (format: Format, text: string) => string;
  /** Colours a text for standard error, where that can show colours. */
  readonly paintError: (format: Format, text: string) => string;
  /** Whether a person watches standard error. */
  readonly watched?: boolean;
  /** Shows a passing line on a terminal's standard error; an empty one takes it away. */
  readonly progress: (text: string) => void;
  /** Aborted when nobody reads standard output any more: `holdfast log list | head`. */
  readonly closed: AbortSignal;
}

/** What `plugins.config.ts` says, as a command sees it. */
export interface CommandConfig {
  /** Absolute path of the file. */
  readonly file: string;
  readonly plugins: readonly ConfiguredPlugin[];
  readonly lingerMs?: number | undefined;
  readonly signEvery?: number | undefined;
  readonly patienceMs?: number | undefined;
  readonly retention?: RetentionSettings | undefined;
  readonly witness?: WitnessSettings | undefined;
  readonly reserveBytes?: number | undefined;
}

/** What a command is run with. */
export interface CommandContext {
  /** Absolute path of the data folder. */
  readonly dataDir: string;
  /** True with `--json`: print one JSON document and nothing else on standard output. */
  readonly json: boolean;
  /** Writes a line to standard output. Throws when nobody reads it any more, which ends the command quietly. */
  readonly print: (line: string) => void;
  /** Writes a line to standard error: what a person should know and a script should not read. */
  readonly note: (line: string) => void;
  /** Width, colours and progress; none of them where no terminal is. */
  readonly terminal: Terminal;
  /**
   * Aborted on SIGINT, SIGTERM and a lost terminal, with the signal's name as reason. A second signal, a second
   * or more after it, ends the process at once.
   */
  readonly signal: AbortSignal;
  /** `plugins.config.ts`, loaded when first asked for. @throws HF_CONFIG_* */
  readonly config: () => Promise<CommandConfig>;
  /** What its plugins declare; nothing is started. @throws HF_CONFIG_*, HF_PLUGIN_* */
  readonly registrations: () => Promise<Registrations>;
  /**
   * The same; where there is no configuration, what those plugins declare that the program brings.
   *
   * @throws HF_CONFIG_*, HF_PLUGIN_*
   */
  readonly declared: () => Promise<Registrations>;
  /**
   * The actors whose records a log holds: those that the configuration's plugins declare; where there is none, those
   * of the plugins that the program brings. @throws HF_REPLAY_MACHINES neither is there; HF_CONFIG_*, HF_PLUGIN_*
   */
  readonly actors: () => Promise<readonly ActorDefinition[]>;
  /**
   * The words for the records of some types of actors. Those of Holdfast's own features stand in files that load nothing
   * else; the configuration is loaded for other types alone.
   *
   * @throws HF_CONFIG_*, HF_PLUGIN_*
   */
  readonly wordsOf: (types: Iterable<string>) => Promise<RecordWords>;
  /**
   * What plugins report of a stopped instance that left actors of these types, loaded in the same way.
   *
   * @throws HF_CONFIG_*, HF_PLUGIN_*
   */
  readonly stoppedReports: (types: Iterable<string>) => Promise<StoppedReports>;
  /** The forms in which `log export` writes beside its own. */
  readonly exportForms: () => Promise<ExportForms>;
  /**
   * The logs of hosts that work as one system, from where each of them keeps a copy. Close it.
   *
   * @throws HF_CLI_USAGE the program has no such feature; what the feature says
   */
  readonly hostLogs: () => Promise<HostLogs>;
}

/** Records of a host that do not count, because another host did that work then. Bounds are inclusive. */
export interface OrphanedRecords {
  readonly from: number;
  readonly to: number;
  /** What they were made for, and the host that had it. */
  readonly singleton: string;
  readonly by: string;
  /** Types of the actors whose records they are. */
  readonly types: readonly string[];
}

/** The log of a host as it is kept elsewhere. Close its reader. */
export interface StoredHostLog {
  readonly host: string;
  /** Chain and signatures are checked. */
  readonly reader: SqliteReader;
  /** The key that signed it. */
  readonly key: string;
  /** How far the host's clock is behind one that all hosts share, milliseconds; negative when it is ahead. */
  readonly clockBehindMs: number;
  /** Why it does not hold all that the host recorded, as far as is known; undefined when it does. */
  readonly lacks?: string | undefined;
  /** In order. */
  readonly orphaned: readonly OrphanedRecords[];
}

/** Logs of hosts, kept elsewhere. */
export interface HostLogs {
  /** The name of this host among them. */
  readonly own: string;
  /** The hosts' names, in order. */
  hosts(): Promise<readonly string[]>;
  /** @throws HF_LOG_CORRUPT it is not what the host wrote; what the feature says */
  open(host: string, signal?: AbortSignal): Promise<StoredHostLog>;
  /** Whether a host is running, as far as the others know. @throws what the feature says, when that cannot be known now */
  isRunning(host: string): Promise<boolean>;
  close(): Promise<void>;
}

/** What brings them, by the configuration or the environment. */
export type OpenHostLogs = (
  context: Pick<CommandContext, 'config'>,
  env: Readonly<Record<string, string | undefined>>,
) => Promise<HostLogs>;

/** A part of a log that is exported. */
export interface LogPart {
  readonly header: PortableHeader;
  /** The lines of a portable file; read once. */
  readonly lines: Iterable<string>;
  /** The first and the last record of the log that it is a part of. */
  readonly of: { readonly first: number; readonly last: number };
  /** The hash of its last record. */
  readonly head: string;
}

/**
 * Writes a part of a log in another form than lines.
 *
 * @param file absolute; it appears whole or not at all
 * @returns its bytes
 * @throws HF_PORTABLE_WRITE, and errors of the form
 */
export type WriteLogPart = (part: LogPart, file: string, context: CommandContext) => Promise<number>;

/** The forms that features of the program bring, by name; each is loaded when it is wanted. */
export type ExportForms = Readonly<Record<string, () => Promise<WriteLogPart>>>;

export interface CommandFlag {
  /** Commander's form, e.g. `--limit <n>`. */
  readonly flags: string;
  readonly summary: string;
  readonly default?: string | boolean;
  /** It may be given several times: its values come as an array, in order; absent when it was not given. */
  readonly repeatable?: boolean;
}

/**
 * Carries a command out.
 *
 * @param args the arguments that were given, in order
 * @param flags by their names in camel case; one that was not given and has no default is absent
 * @returns the exit code; 0 when nothing is returned
 */
export type CommandRun = (
  args: readonly string[],
  flags: Readonly<Record<string, unknown>>,
  context: CommandContext,
) => Promise<number | undefined> | number | undefined | Promise<void>;

/** A command of the command line, declared by core or by a plugin. */
export interface CommandDefinition {
  /** Words and arguments, e.g. `lamp on` or `log show <seq>`. */
  readonly name: string;
  /** What the command does: third person, capital letter, no full stop, e.g. `Lists records, the newest last`. */
  readonly summary: string;
  /** One line that works, shown under `--help`. */
  readonly example: string;
  /** What a newcomer types first of its area: the ready screen names it. */
  readonly first?: true;
  /** It goes on until somebody ends it: an interruption is then its success, and not work that was left undone. */
  readonly untilInterrupted?: true;
  readonly flags?: readonly CommandFlag[];
  readonly run: CommandRun;
}

/** The words that choose a command: `log show <seq>` is `log`, `show`. */
export function commandWords(name: string): string[] {
  return name.split(/\s+/).filter((word) => !/^[<[]/.test(word));
}
