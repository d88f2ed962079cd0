/** What the checks of a data folder leave in its log, and what a health page says of it: enough without the machine. */

import { HIDDEN } from '../../kernel/actors/definition.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import type { ActorRef } from '../../kernel/ids.ts';
import type { Json } from '../../kernel/json.ts';
import { CLOCK, type LogRecord } from '../../kernel/log/record.ts';
import { clockContextOf, openJumpFact } from '../clock/records.ts';
import type { StoppedReports } from '../plugin/definition.ts';
import { sizeText } from '../size.ts';
import { counted, duration, timestamp } from '../terminal.ts';
import { type DataCheckResult, dataCheckResultSchema, isDamage, summaryOf } from './findings.ts';
import type { DataCheckContext } from './machine.ts';

/** The one actor that remembers what the checks of a data folder found. */
export const DATA_CHECK = 'runtime.data_check/host' as ActorRef;

/** A record of it in few words. */
export function describeDataCheck({ event }: LogRecord): string {
  const { type, ...fields } = event;
  const { data: result } = dataCheckResultSchema.safeParse(fields);
  if (type !== 'CHECKED' || !result) return HIDDEN;
  const { findings, files, records } = result;
  return findings.length === 0
    ? `checked ${counted(records, 'record')} and ${counted(files, 'file')}: all as they were left`
    : `checked ${counted(records, 'record')} and ${counted(files, 'file')}: ${summaryOf(result)}`;
}

/** What the newest check found; undefined before the first. */
export function lastCheckOf(state: Readonly<ActorState> | undefined): DataCheckResult | undefined {
  return (state?.context as DataCheckContext | undefined)?.last;
}

/** What `holdfast status` says of a folder on which nothing runs. */
export const stoppedReports: StoppedReports = {
  clock: (states) => openJumpFact(clockContextOf(states.get(CLOCK.actor))),
  data: (states, now) => dataFact(lastCheckOf(states.get(DATA_CHECK)), now, { checked: true }),
};

/**
 * The fact of health pages.
 *
 * @param last what the newest check found; undefined before the first
 * @param now epoch milliseconds
 * @param run `checked`: whether this run has checked yet, because what an earlier run found says little of now; `working`:
 *   what goes on, e.g. `40 % are read`
 */
export function dataFact(
  last: DataCheckResult | undefined,
  now: number,
  { checked, working }: { readonly checked: boolean; readonly working?: string | undefined },
): Json {
  const damaged = last?.findings.some(isDamage) ?? false;
  const state = damaged
    ? 'damaged'
    : !checked || !last
      ? 'unknown'
      : last.findings.length > 0
        ? 'changed'
        : 'ok';
  const found = last && (last.findings.length === 0 ? 'all as it was left' : summaryOf(last));
  const earlier = last
    ? `${found} (${timestamp(last.at)}, ${duration(Math.max(0, now - last.at))} ago: ${sizeOf(last)})`
    : undefined;
  const text = [
    ...(checked && earlier
      ? [earlier]
      : [earlier ? `not checked since this start; before: ${earlier}` : 'not checked yet']),
    ...(working === undefined ? [] : [working]),
  ].join('; ');
  return {
    ...(damaged && { ok: false, reason: last ? summaryOf(last) : '' }),
    state,
    text,
    ...(last && { last: { ...last, findings: last.findings.map((finding) => ({ ...finding })) } }),
  };
}

function sizeOf({ records, files, bytes, archives, tookMs }: DataCheckResult): string {
  return `${counted(records, 'record')}, ${counted(archives, 'archive')}, ${counted(files, 'file')}, ${sizeText(bytes)} in ${(tookMs / 1_000).toFixed(1)} s`;
}
