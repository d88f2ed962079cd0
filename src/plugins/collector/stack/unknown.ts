import type { CheckResult } from '../../../core/host/plugin/diagnosis.ts';

const REMEDY =
  'Make it possible to look: docs/stack.md lists the options that name the objects, and the rights that the account needs.';

/** The result of a check that could not look. @param why a part of a sentence */
export function unknown(lookedAt: string, why: string, remedy: string = REMEDY): CheckResult {
  return { state: 'unknown', lookedAt, found: `not checked: ${why.replace(/\.$/, '')}`, remedy };
}

const ORDER = ['ok', 'warn', 'unknown', 'fail'] as const;

/** The worst of several states: `fail` comes before `unknown`. */
export function worst(states: readonly CheckResult['state'][]): CheckResult['state'] {
  return ORDER[Math.max(0, ...states.map((state) => ORDER.indexOf(state)))] ?? 'unknown';
}
