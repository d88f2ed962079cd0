import { isObject } from '../../kernel/json.ts';
import type { CheckContext, CheckResult } from '../plugin/diagnosis.ts';

/** What `holdfast doctor` says of jumps of the wall clock. */
export function clockCheck({ facts, running }: CheckContext): CheckResult {
  const lookedAt = running ? 'the health page of the instance' : 'the log that the last instance left';
  const fact = facts?.clock;
  const remedy =
    'Check the time service (`timedatectl`). When the clock is right again, or has gone on for a day, this ends by itself.';
  if (!isObject(fact)) {
    const found = 'nothing runs here that looks at the clock, or no health page says so';
    return { state: 'unknown', lookedAt, found, remedy: 'Start the instance: it looks all the time.' };
  }
  const found = String(fact.text);
  if (fact.state === 'jumped') return { state: 'warn', lookedAt, found, remedy };
  return { state: running ? 'ok' : 'unknown', lookedAt, found: `the clock ${found}` };
}
