/** Describes records of manual pushes for `holdfast log`. It imports no code of the running plugin, so that commands load it quickly. */
import {
  DEFAULT_WORDS,
  HIDDEN,
  problemEvents,
  type RecordOf,
  type RecordWords,
} from '../../core/kernel/actors/definition.ts';
import type { manualPush } from '../../machines/uptime/push.ts';

export const words: RecordWords = {
  'uptime.push': describePushRecord,
};

export function describePushRecord({ event }: RecordOf<typeof manualPush>): string | undefined {
  switch (event.type) {
    case 'init':
      return HIDDEN;
    case 'PUSHED':
      return 'a push by hand arrived';
    case 'PUSH_REFUSED':
      return `a push by hand was refused, HTTP ${event.status}: ${event.msg ?? event.body}`;
    case 'PUSH_FAILED':
      return `a push by hand did not arrive: ${event.reason}`;
  }
  return DEFAULT_WORDS;
}
describePushRecord.problem = problemEvents('PUSH_REFUSED', 'PUSH_FAILED');
