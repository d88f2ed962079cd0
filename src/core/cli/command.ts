/** What a command is run with. */
export interface CommandContext {
  /** Absolute path of the data folder. */
  readonly dataDir: string;
  /** True with `--json`: print one JSON document and nothing else on standard output. */
  readonly json: boolean;
  /** Writes a line to standard output. */
  readonly print: (line: string) => void;
  /** Aborted on SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
}

export interface CommandFlag {
  /** Commander's form, e.g. `--limit <n>`. */
  readonly flags: string;
  readonly summary: string;
  readonly default?: string | boolean;
}

/** A command of the command line, declared by core or by a plugin. */
export interface CommandDefinition {
  /** Words and arguments, e.g. `router get` or `log show <seq>`. */
  readonly name: string;
  readonly summary: string;
  /** One line that works, shown under `--help`. */
  readonly example: string;
  readonly flags?: readonly CommandFlag[];
  /** @returns the exit code; 0 when nothing is returned */
  readonly run: (
    args: readonly string[],
    flags: Readonly<Record<string, unknown>>,
    context: CommandContext,
  ) => Promise<number | undefined> | number | undefined | Promise<void>;
}
