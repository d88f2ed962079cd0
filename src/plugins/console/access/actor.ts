import { defineActor } from '../../../core/kernel/actors/definition.ts';
import { consoleAccess } from '../../../machines/console/access.ts';
import { describeAccess } from '../words.ts';

/** Who was let into the console, and what was done from there (C15). */
export const accessActor = defineActor({
  type: 'console.access',
  machine: consoleAccess,
  version: 1,
  describe: describeAccess,
});

/** There is one console. */
export const ACCESS_KEY = 'host';
