import { defineErrors } from './holdfast-error.ts';
import { cliErrors } from './table/cli.ts';
import { httpErrors } from './table/http.ts';
import { logErrors } from './table/log.ts';
import { runtimeErrors } from './table/runtime.ts';
import { setupErrors } from './table/setup.ts';

/**
 * Errors of core, the command line and the launcher; a plugin has a class of its own (`definePlugin({ errors })`).
 * `docs/reference/errors.md` is made from all of them, and a test proves that tables, page and the codes raised agree.
 */
export const CoreError = defineErrors({
  ...setupErrors,
  ...runtimeErrors,
  ...logErrors,
  ...httpErrors,
  ...cliErrors,
});
