import { HostError } from '../core/host/errors/host-error.ts';
import { maskText } from '../core/host/logging/mask-text.ts';
import { type CommandContext, type CommandDefinition, commandWords } from '../core/host/plugin/command.ts';
import type { ConfiguredPlugin } from '../core/host/plugin/definition.ts';
import { inertText, processTerminal, type Terminal } from '../core/host/terminal.ts';
import { coreCommands } from './commands.ts';
import { Configuration, type LogFeatures } from './configuration.ts';
import { exitCodeOf, exitCodeOfInterruption, isInterruption, OK, printError } from './failure.ts';
import {
  asUsageError,
  buildProgram,
  type GlobalFlags,
  glance,
  isAnswered,
  type ListedCommand,
  listedOf,
} from './program.ts';

/** Where a command line runs: this process, or a test. */
export interface Host {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly terminal: Terminal;
  /** Aborted with the name of a signal that asks the command to end. */
  readonly interrupted: AbortSignal;
  /** The plugins that the program brings: a log is read with their machines where no configuration names others. */
  readonly builtinPlugins?: (() => Promise<readonly ConfiguredPlugin[]>) | undefined;
  /** What reads the logs of their features without loading them. */
  readonly logFeatures?: LogFeatures | undefined;
  /** The commands of those plugins that need no configuration. */
  readonly standaloneCommands?: (() => Promise<readonly CommandDefinition[]>) | undefined;
}

/**
 * Runs one command line. Plugins are loaded only when the words choose neither a command of core nor one that needs no
 * configuration, or when help is wanted.
 *
 * @param argv the arguments after the program's name
 * @returns the exit code: 0 well, 1 the check or the work failed, 2 usage or configuration, 128 and the number
 *   of the signal that ended the command before its work was done
 */
export async function runCommandLine(argv: readonly string[], host: Host): Promise<number> {
  const { terminal } = host;
  const { words, flags } = glance(argv);
  const listed: ListedCommand[] = coreCommands.map((command) => ({ heading: 'Commands:', command }));
  const configuration = new Configuration({
    ...host,
    file: flags.config,
    dataDir: flags.dataDir,
  });
  let remark: string | undefined;
  let fallback = false;
  let isStandalone = false;
  let code = OK;
  let chosen: CommandDefinition | undefined;
  try {
    if (!isChosen(coreCommands, words) && !isVersion(words, argv)) {
      const standalone = (await host.standaloneCommands?.()) ?? [];
      isStandalone = isChosen(standalone, words);
      if (!isStandalone) {
        const plugins = await commandsOfPlugins(configuration);
        listed.push(...plugins.listed);
        remark = plugins.remark;
        fallback = plugins.fallback === true;
      }
      const others = standalone.filter(({ name }) => listed.every(({ command }) => command.name !== name));
      listed.push(...others.map((command) => ({ heading: 'Commands:', command })));
    }
    const run = async (command: CommandDefinition, args: readonly string[], own: object): Promise<void> => {
      chosen = command;
      if (fallback && remark !== undefined) terminal.err(`${remark}\n`);
      const note = (line: string) => terminal.err(`${inertText(line)}\n`);
      const dataDir = isStandalone
        ? await configuration.dataDirWithoutFile()
        : // The remark has said already why the configuration cannot be loaded.
          await configuration.dataDir(fallback ? () => {} : note);
      const context = contextOf(host, configuration, { ...flags, dataDir }, note);
      code = (await command.run(args, own as Record<string, unknown>, context)) ?? OK;
    };
    await buildProgram(listed, terminal, run, remark).parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    if (isAnswered(error)) return OK;
    if (isInterruption(error, terminal.closed)) return OK;
    if (isInterruption(error, host.interrupted))
      return chosen?.untilInterrupted === true ? OK : exitCodeOfInterruption(host.interrupted);
    const reported = asUsageError(error, knownWords(words, listed), remark);
    printError(reported, flags.json === true, terminal);
    return exitCodeOf(reported);
  } finally {
    terminal.progress('');
  }
}

/**
 * Runs a command line in this process: its terminal, its signals.
 *
 * @param builtin what the plugins bring that the program is delivered with
 */
export async function runHere(
  argv: readonly string[],
  builtin: Pick<Host, 'builtinPlugins' | 'logFeatures' | 'standaloneCommands'> = {},
): Promise<number> {
  const interrupted = new AbortController();
  let interruptedAt = 0;
  const interrupt = (signal: NodeJS.Signals): void => {
    if (!interrupted.signal.aborted) {
      interruptedAt = performance.now();
      interrupted.abort(signal);
      return;
    }
    // A second signal means that somebody does not want to wait. One within the same second is an echo of the first:
    // supervisors signal a whole process group, and a launcher in it forwards its own.
    if (performance.now() - interruptedAt > ECHO_MS) process.exit(128 + (signal === 'SIGINT' ? 2 : 15));
  };
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  // Only with a terminal to lose: a process under nohup ignores it, and must go on to.
  if (process.stderr.isTTY) process.on('SIGHUP', interrupt);
  const code = await runCommandLine(argv, {
    cwd: process.cwd(),
    env: process.env,
    terminal: processTerminal(),
    interrupted: interrupted.signal,
    ...builtin,
  });
  // A socket that is kept alive must not keep a finished command from ending.
  setTimeout(() => process.exit(code), LINGER_MS).unref();
  return code;
}

const LINGER_MS = 1_000;
const ECHO_MS = 1_000;

function contextOf(
  { terminal, interrupted }: Host,
  configuration: Configuration,
  { json = false, dataDir }: GlobalFlags & { readonly dataDir: string },
  note: (line: string) => void,
): CommandContext {
  return {
    dataDir,
    json,
    print: (line) => {
      terminal.closed.throwIfAborted(); // nobody reads any more: that ends the command
      terminal.out(`${inertText(line, terminal.paint('bold', ' ') !== ' ')}\n`);
    },
    note,
    terminal,
    signal: interrupted,
    config: () => configuration.load(),
    registrations: () => configuration.registrations(),
    declared: () => configuration.declared(),
    actors: () => configuration.actors(),
    wordsOf: (types) => configuration.wordsOf(types),
    stoppedReports: (types) => configuration.stoppedReports(types),
    exportForms: () => configuration.exportForms(),
    hostLogs: () => configuration.hostLogs(),
  };
}

/** Whether the words choose one of these commands, so that no other need be loaded. */
function isChosen(commands: readonly CommandDefinition[], words: readonly string[]): boolean {
  return commands.some(({ name }) => commandWords(name).every((word, index) => words[index] === word));
}

/** `--version` needs no plugin, so it also works while the configuration is broken. */
function isVersion(words: readonly string[], argv: readonly string[]): boolean {
  return words.length === 0 && (argv.includes('--version') || argv.includes('-V'));
}

/** The leading words that name a command, or a group of commands, for the hint to its help. */
function knownWords(words: readonly string[], listed: readonly ListedCommand[]): string {
  const names = listed.map(({ command }) => commandWords(command.name));
  let length = words.length;
  const isKnown = () => names.some((name) => words.slice(0, length).every((word, at) => word === name[at]));
  while (!isKnown()) length -= 1;
  return words.slice(0, length).join(' ');
}

/** The commands of plugins. Help is shown, and a misspelt command is explained, even while the configuration is broken. */
async function commandsOfPlugins(
  configuration: Configuration,
): Promise<{ listed: ListedCommand[]; remark?: string; fallback?: boolean }> {
  try {
    if (!(await configuration.exists())) {
      return {
        listed: [],
        remark:
          'There is no plugins.config.ts here, so the commands of plugins are not listed: name one with --config.',
      };
    }
    const { commands, plugins } = await configuration.registrations();
    for (const { name, owner } of commands) {
      if (!isChosen(coreCommands, commandWords(name))) continue;
      const details = { what: `Command ${commandWords(name).join(' ')}`, first: 'core', second: owner };
      throw new HostError('HF_PLUGIN_CONFLICT', details);
    }
    return { listed: listedOf({ commands, plugins }) };
  } catch (error) {
    const reason = maskText(error instanceof Error ? error.message : String(error));
    const builtin = await configuration.builtin();
    if (!builtin) return { listed: [], remark: `The commands of plugins are not listed. ${reason}` };
    // A broken file is fixed with these commands: they reach the instance that still runs.
    const listed = listedOf(builtin);
    const remark = `The configuration cannot be loaded; the built-in plugins are used with their defaults. ${reason}`;
    return { listed, remark, fallback: true };
  }
}
