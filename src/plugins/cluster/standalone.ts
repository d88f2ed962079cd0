import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { clusterCommands } from './commands/commands.ts';

/**
 * The plugin is configured by a variable that the terminal of an operator need not have: its commands are there without.
 * The command line finds this file by its name.
 */
export const standaloneCommands: readonly CommandDefinition[] = clusterCommands;
