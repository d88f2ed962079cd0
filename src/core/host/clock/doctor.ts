import { isObject } from '../../kernel/json.ts';
import type { CheckContext, CheckResult } from '../plugin/diagnosis.ts';

/** What `holdfast doctor` says of jumps of the wall clock. */
export function clockCheck({ facts, running }: CheckContext): CheckResult {
  const lookedAt = running ? 'the health page of the instance' : 'the log that the last instance left';
  const fact = facts?.clock;
  const remedy =
    'Check the time service (`timedatectl`). When the clock is right again, or has gone on for a day, this ends by itself.';
  if (!isObject(fact)) {
    const found = 'nothing says how the clock was set';
    return { state: 'unknown', lookedAt, found, remedy: 'Start the instance with the console plugin.' };
  }
  const found = `the clock: ${String(fact.text)}`;
  if (fact.state === 'jumped') return { state: 'warn', lookedAt, found, remedy };
  if (running && fact.state === 'ok') return { state: 'ok', lookedAt, found };
  const unseen = 'the clock has no open jump in the log; nothing looks at it while no instance runs';
  return { state: 'unknown', lookedAt, found: unseen, remedy: 'Start the instance: it looks all the time.' };
}
