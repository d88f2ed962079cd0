/**
 * The command line: core's commands (`commands/`), those that plugins declare, and how both are parsed, run and
 * fail. `src/main.ts` calls `runHere`; plugins know only the contract in `command.ts`.
 */
export type { CommandContext, CommandDefinition, CommandFlag } from './command.ts';
export { type Host, runCommandLine, runHere } from './run.ts';
export type { Terminal } from './terminal.ts';
