import { type CommandContext, type CommandDefinition, commandWords } from '../core/host/plugin/command.ts';
import type { ConfiguredPlugin } from '../core/host/plugin/definition.ts';
import { inertText, processTerminal, type Terminal } from '../core/host/terminal.ts';
import { CoreError } from '../core/kernel/errors/core-error.ts';
import { coreCommands } from './commands.ts';
import { Configuration } from './configuration.ts';
import { exitCodeOf, isInterruption, OK, printError } from './failure.ts';
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
}

/**
 * Runs one command line. The commands of plugins are asked for only when the words are none of
 * core's own, or when help is wanted.
 *
 * @param argv the arguments after the program's name
 * @returns the exit code: 0 well, 1 the check or the work failed, 2 usage or configuration
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
  let code = OK;
  try {
    if (!isOfCore(words) && !isVersion(words, argv)) {
      const plugins = await commandsOfPlugins(configuration);
      listed.push(...plugins.listed);
      remark = plugins.remark;
      fallback = plugins.fallback === true;
    }
    const run = async (command: CommandDefinition, args: readonly string[], own: object): Promise<void> => {
      if (fallback && remark !== undefined) terminal.err(`${remark}\n`);
      const context = await contextOf(host, configuration, flags, fallback);
      code = (await command.run(args, own as Record<string, unknown>, context)) ?? OK;
    };
    await buildProgram(listed, terminal, run, remark).parseAsync([...argv], { from: 'user' });
    return code;
  } catch (error) {
    if (isAnswered(error)) return OK;
    if (isInterruption(error, host.interrupted) || isInterruption(error, terminal.closed)) return OK;
    const told = asUsageError(error, knownWords(words, listed), remark);
    printError(told, flags.json === true, terminal);
    return exitCodeOf(told);
  } finally {
    terminal.progress('');
  }
}

/**
 * Runs a command line in this process: its terminal, its signals.
 *
 * @param builtinPlugins from the composition root, for core knows no plugin
 */
export async function runHere(
  argv: readonly string[],
  builtinPlugins?: Host['builtinPlugins'],
): Promise<number> {
  const interrupted = new AbortController();
  let asked = 0;
  const interrupt = (signal: NodeJS.Signals): void => {
    if (!interrupted.signal.aborted) {
      asked = performance.now();
      interrupted.abort(signal);
      return;
    }
    // The first asks; whoever sends a second does not want to wait any longer. One at the same moment is the first by
    // another way: supervisors signal a whole group, and a launcher in it passes its own on.
    if (performance.now() - asked > ECHO_MS) process.exit(128 + (signal === 'SIGINT' ? 2 : 15));
  };
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  // Only with a terminal to lose: a process under nohup ignores it, and must go on to.
  if (process.stderr.isTTY) process.on('SIGHUP', interrupt);
  const code = await runCommandLine(argv, {
    cwd: process.cwd(),
    env: process.env,
    terminal: processTerminal(),
    interrupted: interrupted.signal,
    builtinPlugins,
  });
  // What is still open (a socket that is kept alive) must not keep a command that is done from ending.
  setTimeout(() => process.exit(code), LINGER_MS).unref();
  return code;
}

const LINGER_MS = 1_000;
const ECHO_MS = 1_000;

async function contextOf(
  { terminal, interrupted }: Host,
  configuration: Configuration,
  { json = false }: GlobalFlags,
  isTold: boolean,
): Promise<CommandContext> {
  const note = (line: string) => terminal.err(`${inertText(line)}\n`);
  return {
    // Why the configuration cannot be loaded is told once.
    dataDir: await configuration.dataDir(isTold ? () => {} : note),
    json,
    print: (line) => {
      terminal.closed.throwIfAborted(); // nobody reads any more: that ends the command
      terminal.out(`${inertText(line)}\n`);
    },
    note,
    terminal,
    signal: interrupted,
    config: () => configuration.load(),
    registrations: () => configuration.registrations(),
    actors: () => configuration.actors(),
  };
}

/** Whether the words choose one of core's commands, so that no plugin need be asked. */
function isOfCore(words: readonly string[]): boolean {
  return coreCommands.some(({ name }) => commandWords(name).every((word, index) => words[index] === word));
}

/** It is answered at once, and with a broken configuration, too. */
function isVersion(words: readonly string[], argv: readonly string[]): boolean {
  return words.length === 0 && (argv.includes('--version') || argv.includes('-V'));
}

/** The part of the words that names a command, or a folder of commands, to be asked for help. */
function knownWords(words: readonly string[], listed: readonly ListedCommand[]): string {
  const names = listed.map(({ command }) => commandWords(command.name));
  let length = words.length;
  const isKnown = () => names.some((name) => words.slice(0, length).every((word, at) => word === name[at]));
  while (!isKnown()) length -= 1;
  return words.slice(0, length).join(' ');
}

/** Help is given, and a slip of the pen is answered, also where the configuration cannot be loaded. */
async function commandsOfPlugins(
  configuration: Configuration,
): Promise<{ listed: ListedCommand[]; remark?: string; fallback?: boolean }> {
  try {
    if (!(await configuration.exists())) {
      return {
        listed: [],
        remark: 'There is no plugins.config.ts here, so no command of a plugin is known.',
      };
    }
    const { commands, plugins } = await configuration.registrations();
    for (const { name, owner } of commands) {
      if (!isOfCore(commandWords(name))) continue;
      const details = { what: `Command ${commandWords(name).join(' ')}`, first: 'core', second: owner };
      throw new CoreError('HF_PLUGIN_CONFLICT', details);
    }
    return { listed: listedOf({ commands, plugins }) };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const builtin = await configuration.builtin();
    if (!builtin) return { listed: [], remark: `The commands of plugins are not known. ${reason}` };
    // A broken file is fixed with these commands: they reach the instance that still runs.
    const listed = listedOf(builtin);
    const remark = `The configuration cannot be loaded: plugins that Holdfast brings stand in with their defaults. ${reason}`;
    return { listed, remark, fallback: true };
  }
}
