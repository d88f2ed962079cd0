/** The check `memory.drills`: whether the backups of each path were restored lately, and proven. */
import { z } from 'zod';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { isObject } from '../../core/kernel/json.ts';
import { isRecent } from '../../machines/backup-age.ts';
import type { DrillPath, Result } from '../../machines/restore/drill-shapes.ts';

/** A proof of a backup of long ago says nothing of those of today. */
const OLD_MS = 31 * 86_400_000;

// A type and not an interface, because only types count as JSON for the compiler.
type NewestDrill = {
  readonly outcome: string;
  readonly at: string;
  readonly isOld: boolean;
  readonly reason?: string;
};
const newest: z.ZodType<NewestDrill> = z.object({
  outcome: z.string(),
  at: z.string(),
  isOld: z.boolean(),
  reason: z.string().exactOptional(),
});
/** The newest drill of each path that the instance has; null for none. */
const fact = z.record(z.string(), newest.nullable());
type DrillsFact = Readonly<Record<string, NewestDrill | null>>;

/** @param now epoch milliseconds */
export function drillsFact(paths: readonly DrillPath[], results: readonly Result[], now: number): DrillsFact {
  return Object.fromEntries(
    paths.map((path) => {
      const newest = results.findLast((result) => result.path === path);
      if (!newest) return [path, null];
      const { outcome, endedAt, report, failure } = newest;
      const reason = failure?.reason ?? report?.verdict;
      return [
        path,
        {
          ...{ outcome, at: new Date(endedAt).toISOString(), isOld: !isRecent(endedAt, now, OLD_MS) },
          ...(reason !== undefined && { reason }),
        },
      ];
    }),
  );
}

/**
 * How drills are, for the health page: `ok` only when the backups of every path were proven lately.
 *
 * @param drills as `drillsFact` gives them
 * @param isWrong something failed
 */
export function drillsHealth(
  drills: DrillsFact,
  isWrong: boolean,
): { readonly ok?: boolean; readonly unknown?: string } {
  if (isWrong) return { ok: false };
  const missing = Object.entries(drills).flatMap(([path, drill]) => {
    if (!drill) return [`path ${path}: no backup was ever restored`];
    return drill.outcome === 'completed' && !drill.isOld ? [] : [`path ${path}: none was proven lately`];
  });
  if (Object.keys(drills).length === 0) missing.push('no path of a drill is configured');
  return missing.length === 0 ? { ok: true } : { unknown: missing.join('; ') };
}

export const drillsCheck: CheckDefinition = { name: 'memory.drills', run: check };

const DRILL = 'Run `holdfast restore drill`; a backup is proven by restoring it.';

function check({ running }: CheckContext): CheckResult {
  const lookedAt = 'the newest restore drill of each path';
  const restore = running?.facts.restore;
  const { data } = fact.safeParse(isObject(restore) ? restore.drills : undefined);
  if (!data) {
    const found = 'not looked at, because no instance with restore drills runs here';
    return { state: 'unknown', lookedAt, found, remedy: 'Start it with `holdfast start`.' };
  }
  const seen = Object.entries(data).map(([path, drill]) => {
    if (!drill) return { state: 'unknown', text: `path ${path}: no backup was ever restored` } as const;
    const { outcome, at, isOld, reason } = drill;
    const text = `path ${path}: ${outcome} at ${at}`;
    if (outcome !== 'completed') return { state: 'fail', text: `${text}: ${reason ?? 'no reason'}` } as const;
    if (isOld) return { state: 'unknown', text: `${text}, too long ago` } as const;
    return { state: 'ok', text } as const;
  });
  const found = seen.map(({ text }) => text).join('; ');
  if (seen.some(({ state }) => state === 'fail')) {
    const remedy = '`holdfast restore status` shows what differs; make a new backup and drill it.';
    return { state: 'fail', lookedAt, found, remedy };
  }
  if (seen.length === 0 || seen.some(({ state }) => state === 'unknown')) {
    return { state: 'unknown', lookedAt, found: found || 'no path of a drill is configured', remedy: DRILL };
  }
  return { state: 'ok', lookedAt, found };
}
