import { Command, CommanderError, Option } from 'commander';
import { HostError } from '../core/host/errors/host-error.ts';
import { type CommandDefinition, commandWords } from '../core/host/plugin/command.ts';
import type { Registrations } from '../core/host/plugin/registrations.ts';
import type { Terminal } from '../core/host/terminal.ts';
import { version } from '../core/kernel/version.ts';
import { CliError } from './errors.ts';
import { EXIT_CODES } from './failure.ts';

/** Options that every command takes. */
export interface GlobalFlags {
  readonly config?: string;
  readonly dataDir?: string;
  readonly json?: boolean;
}

/** Runs a command that the arguments chose. */
export type Runner = (
  command: CommandDefinition,
  args: readonly string[],
  flags: Readonly<Record<string, unknown>>,
) => Promise<void>;

/** A command with the heading under which the help lists it. */
export interface ListedCommand {
  readonly heading: string;
  readonly command: CommandDefinition;
}

/** The commands of plugins, each under the area of its plugin, or under the plugin's name. */
export function listedOf({
  commands,
  plugins,
}: Pick<Registrations, 'commands' | 'plugins'>): ListedCommand[] {
  const areas = new Map(plugins.map(({ name, about }) => [name, about?.area]));
  return commands.map((command) => ({
    heading: `${areas.get(command.owner) ?? `Plugin ${command.owner}`}:`,
    command,
  }));
}

/** What the groups of core's commands are for; another group lists its commands. */
const GROUPS: Readonly<Record<string, string>> = {
  log: 'Reads the event log',
  replay: 'Runs the log through its machines again',
};

/**
 * Builds commander's program from command definitions.
 *
 * @param remark shown below the list of commands, e.g. why those of plugins are missing
 */
export function buildProgram(
  listed: readonly ListedCommand[],
  terminal: Terminal,
  run: Runner,
  remark?: string,
): Command {
  const program = new Command('holdfast')
    .description(
      'Keeps a router, its observability stack and its gateway in the state that the operator wants.',
    )
    .version(version, '-V, --version', 'print the version')
    .option('--config <file>', 'configuration (default: plugins.config.ts)')
    .option('--data-dir <dir>', 'data folder (default: HOLDFAST_DATA_DIR, then .holdfast)')
    .option('--json', 'print one JSON document')
    .helpOption('-h, --help', 'show help')
    .helpCommand('help [command]', 'Shows help of a command')
    .exitOverride()
    .configureHelp({
      showGlobalOptions: true,
      helpWidth: Math.min(terminal.columns, 100),
      styleTitle: (text) => terminal.paint('bold', text),
    })
    .configureOutput({
      writeOut: terminal.out,
      writeErr: terminal.err,
      outputError: () => {}, // whoever catches it prints it in the form of all errors
    })
    .addHelpText('afterAll', `\n${EXIT_CODES}`);
  for (const { heading, command } of listed) add(program, heading, command, run);
  for (const group of program.commands.filter(({ commands }) => commands.length > 0)) {
    const inside = group.commands.map((command) => command.name()).join(', ');
    group.description(group.description() || (GROUPS[group.name()] ?? inside));
    const inGroup = listed
      .map(({ command }) => command)
      .filter(({ name }) => commandWords(name)[0] === group.name());
    // A group that is a command itself, like `push`, has its own example already.
    const example = inGroup.some(({ name }) => commandWords(name).length === 1) ? undefined : inGroup[0];
    if (example) group.addHelpText('after', `\nExample:\n  $ ${example.example}`);
  }
  if (remark !== undefined) program.addHelpText('after', `\n${remark}`);
  program.addHelpText('after', '\nExample:\n  $ holdfast log tail --data-dir .holdfast');
  return program;
}

function add(program: Command, heading: string, definition: CommandDefinition, run: Runner): void {
  const words = commandWords(definition.name);
  const parameters = definition.name.split(/\s+/).slice(words.length);
  let command = program;
  for (const [depth, word] of words.entries()) {
    const existing = command.commands.find((child) => child.name() === word);
    command = existing ?? command.command(word);
    if (existing) continue;
    if (depth === 0) command.helpGroup(heading);
  }
  command.description(definition.summary).addHelpText('after', `\nExample:\n  $ ${definition.example}`);
  for (const parameter of parameters) command.argument(parameter);
  for (const { flags, summary, default: value, repeatable } of definition.flags ?? []) {
    const option = new Option(flags, summary);
    if (repeatable) option.argParser((given: string, before: string[] = []) => [...before, given]);
    command.addOption(value === undefined ? option : option.default(value));
  }
  command.action(() => run(definition, command.args, command.opts()));
}

/**
 * The words that choose a command, and what must be known before it is chosen. Commander reads everything again,
 * and properly, once it knows the commands.
 */
export function glance(argv: readonly string[]): { words: string[]; flags: GlobalFlags } {
  const words: string[] = [];
  const flags: { -readonly [K in keyof GlobalFlags]: GlobalFlags[K] } = {};
  let choosing = true;
  for (let index = 0; index < argv.length; index += 1) {
    const [name = '', value] = split(argv[index] ?? '');
    if (name === '--') break;
    if (name === '--json') flags.json = true;
    else if (name === '--config') flags.config = value ?? argv[++index] ?? '';
    else if (name === '--data-dir') flags.dataDir = value ?? argv[++index] ?? '';
    else if (name.startsWith('-')) choosing = false;
    else if (choosing) words.push(name);
  }
  return { words, flags };
}

function split(argument: string): [string, string?] {
  const equals = argument.startsWith('--') ? argument.indexOf('=') : -1;
  return equals < 0 ? [argument] : [argument.slice(0, equals), argument.slice(equals + 1)];
}

/** Help and version end commander by a throw, too. */
export function isAnswered(error: unknown): boolean {
  return error instanceof CommanderError && error.exitCode === 0;
}

/**
 * Commander's refusal as one of our errors; what is not commander's is returned as it is.
 *
 * @param command the words that name a known command, for its help
 */
export function asUsageError(error: unknown, command: string, remark?: string): unknown {
  if (!(error instanceof CommanderError)) return error;
  // `holdfast log` without a further word: commander has shown the help already.
  const text =
    error.code === 'commander.help'
      ? `A command is needed${command && ` after ${command}`}`
      : error.message.replace(/^error: /, '').replace(/\n\((.+)\)$/, '. $1');
  const sentence = /[.?!]$/.test(text) ? text : `${text}.`;
  const unknown = error.code === 'commander.unknownCommand' && remark !== undefined;
  const reason = capital(unknown ? `${sentence} ${remark}` : sentence);
  return command === ''
    ? new CliError('HF_CLI_COMMAND', { reason })
    : new HostError('HF_CLI_USAGE', { reason, command });
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
