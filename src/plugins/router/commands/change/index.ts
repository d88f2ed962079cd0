/**
 * The safe change procedure as a person meets it (R31): difference, question, append, checks inside the window, commit or
 * revert, whatever ends the terminal. `confirmed-change.ts` is the procedure, `carry-out.ts` puts a terminal before it. The
 * commands `apply` and `restore` load it when they need it.
 */
export { carryOut, unlessInterrupted } from './carry-out.ts';
export { changeFlags, EXIT_TEXT } from './flags.ts';
