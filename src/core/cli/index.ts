/**
 * The command line: core's commands (`commands/`), those that plugins declare, and how both are parsed, run and
 * fail. `src/main.ts` calls `runHere`; plugins know only the contract, `plugin/command.ts`.
 */

export { type ControlAnswer, postControl } from '../operations/index.ts';
export type { CommandContext, CommandDefinition, CommandFlag } from '../plugin/command.ts';
export { type Host, runCommandLine, runHere } from './run.ts';
export { table } from './table.ts';
export type { Terminal } from './terminal.ts';
export { wrapped } from './wrapped.ts';
