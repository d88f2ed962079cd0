/** Describes records of the console for `holdfast log`. It imports no code of the running plugin. */
import {
  DEFAULT_WORDS,
  HIDDEN,
  problemEvents,
  type RecordOf,
  type RecordWords,
} from '../../core/kernel/actors/definition.ts';
import type { consoleAccess } from '../../machines/console/access.ts';

export const words: RecordWords = { 'console.access': describeAccess };

export function describeAccess({ event }: RecordOf<typeof consoleAccess>): string | undefined {
  switch (event.type) {
    case 'init':
    case 'migrate':
      return HIDDEN;
    case 'LOGGED_IN':
      return `${event.by} logs in to the console from ${event.from}`;
    case 'LOGGED_OUT':
      return `${event.by} logs out of the console`;
    case 'LOGIN_REFUSED':
      return `too many wrong codes for the console from ${event.from}`;
    case 'ACTED':
      return `${event.by} starts ${event.action} in the console`;
    default:
      return DEFAULT_WORDS;
  }
}
describeAccess.problem = problemEvents('LOGIN_REFUSED');
