import type { LoadedConfig } from '../config/index.ts';
import type { Registrations } from '../plugin/index.ts';
import type { Terminal } from './terminal.ts';

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
   * Aborted on SIGINT, SIGTERM and a lost terminal, with the signal's name as reason. A second signal ends the
   * process at once.
   */
  readonly signal: AbortSignal;
  /** `plugins.config.ts`, loaded when first asked for. @throws HF_CONFIG_* */
  readonly config: () => Promise<LoadedConfig>;
  /** What its plugins declare; nothing is started. @throws HF_CONFIG_*, HF_PLUGIN_* */
  readonly registrations: () => Promise<Registrations>;
}

export interface CommandFlag {
  /** Commander's form, e.g. `--limit <n>`. */
  readonly flags: string;
  readonly summary: string;
  readonly default?: string | boolean;
  /** It may be given several times: its values come as an array, in order; absent when it was not given. */
  readonly repeatable?: boolean;
}

/** A command of the command line, declared by core or by a plugin. */
export interface CommandDefinition {
  /** Words and arguments, e.g. `router get` or `log show <seq>`. */
  readonly name: string;
  readonly summary: string;
  /** One line that works, shown under `--help`. */
  readonly example: string;
  readonly flags?: readonly CommandFlag[];
  /**
   * @param args the arguments that were given, in order
   * @param flags by their names in camel case; one that was not given and has no default is absent
   * @returns the exit code; 0 when nothing is returned
   */
  readonly run: (
    args: readonly string[],
    flags: Readonly<Record<string, unknown>>,
    context: CommandContext,
  ) => Promise<number | undefined> | number | undefined | Promise<void>;
}
