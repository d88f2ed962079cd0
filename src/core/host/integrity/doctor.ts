import { existsSync } from 'node:fs';
import { isObject } from '../../kernel/json.ts';
import { logFile } from '../../kernel/log/schema.ts';
import type { CheckContext, CheckResult } from '../plugin/diagnosis.ts';
import { compareWithStop } from './compare.ts';
import { isDamage, summaryOf } from './findings.ts';

/** What `holdfast doctor` says of the witness of an instance that runs. */
export function witnessCheck({ running }: CheckContext): CheckResult {
  const fact = running?.facts.witness;
  const lookedAt = 'the health page of the instance';
  if (!isObject(fact)) {
    if (!running) {
      const found = 'nothing runs here that sends heads to a witness';
      return { state: 'unknown', lookedAt, found, remedy: 'Start the instance, and look again.' };
    }
    const remedy =
      'Set data.witness (docs/log.md): without one, whoever has the signing key can rewrite the past unnoticed.';
    return { state: 'unknown', lookedAt, found: 'no witness is configured', remedy };
  }
  const found = String(fact.text);
  if (fact.state === 'ok') return { state: 'ok', lookedAt: String(fact.place), found };
  const state = fact.state === 'unknown' ? 'unknown' : 'warn';
  const remedy =
    'See that its disk is mounted and can be written, or that its address answers; it is tried again by itself.';
  return { state, lookedAt: String(fact.place), found, remedy };
}

/**
 * What `holdfast doctor` says of damage in the data folder: of an instance that runs, what its newest check found; of one
 * that was stopped, whether everything is still as the stop left it.
 */
export function damageCheck({ dataDir, facts, running }: CheckContext): CheckResult {
  const lookedAt = `the checksums of ${dataDir}`;
  const remedy =
    'Copy the folder first. Restore damaged files from a copy; for log.db stop the instance and see `holdfast log repair`.';
  if (!running && existsSync(logFile(dataDir))) {
    const { ledger, found } = compareWithStop(dataDir);
    const text = summaryOf({ findings: [...found] });
    if (found.length > 0)
      return { state: found.some(isDamage) ? 'fail' : 'warn', lookedAt, found: text, remedy };
    if (ledger?.stopped) return { state: 'ok', lookedAt, found: 'everything is as the last stop left it' };
  }
  const fact = facts?.data;
  if (running && isObject(fact)) {
    const found = String(fact.text);
    if (fact.state === 'ok') return { state: 'ok', lookedAt, found };
    if (fact.state === 'damaged') return { state: 'fail', lookedAt, found, remedy };
    if (fact.state === 'changed') return { state: 'warn', lookedAt, found, remedy };
    const wait =
      'The check begins some seconds after the start and reads everything at low priority. `holdfast data check` does it now.';
    return { state: 'unknown', lookedAt, found, remedy: wait };
  }
  const found = 'nothing has read the folder since the last instance on it ended, or no health page says so';
  return {
    state: 'unknown',
    lookedAt,
    found,
    remedy: 'Type `holdfast data check`, or start the instance: it checks everything after its start.',
  };
}
