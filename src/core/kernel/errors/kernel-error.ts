import { defineErrors, internalError } from './holdfast-error.ts';
import { actorErrors } from './table/actors.ts';
import { logErrors } from './table/log.ts';
import { secretFileErrors } from './table/secret-files.ts';

/**
 * Errors that the kernel itself throws: of the log, actors, replay and the files that hold its keys. The host, the command
 * line and each plugin have a class of their own. `docs/reference/errors.md` is made from all of them.
 */
export const KernelError = defineErrors({
  ...internalError,
  ...actorErrors,
  ...logErrors,
  ...secretFileErrors,
});
