import { runHere } from './core/cli/index.ts';

/**
 * The command line (DESIGN: commands); `bin/holdfast.js` calls it on a Node that is new enough.
 *
 * @param argv the arguments after the program's name
 * @returns the exit code: 0 well, 1 the check or the work failed, 2 usage or configuration
 */
export function main(argv: string[]): Promise<number> {
  return runHere(argv);
}
