import { z } from 'zod';
import { duration, msOf } from '../../../core/host/duration.ts';
import type { RuleSettings } from '../../../machines/alerts/rule.ts';

const label = z.string().min(1).max(200);
const labels = z.record(z.string().regex(/^[\w.:/-]{1,64}$/), label);

/** The samples that a rule evaluates. */
const measure = z.strictObject({
  /** Evaluates whole windows of the clock, the present one and the one before, so that it ends after one without samples. */
  buckets: z.boolean().default(false),
  /** The table that holds the metric: `file.mtime`, for one, is a sum and no gauge. */
  table: z.enum(['gauge', 'sum']),
  metric: z.string().min(1).max(200),
  /** Attributes that a sample must have; a value may end with `*`. */
  where: labels.default({}),
  /** Attributes of its resource, e.g. `host.name`. */
  resource: labels.default({}),
  /**
   * What becomes of the samples of the window. `count` is their number; `age` is the time since the newest value, hours,
   * for values that are epoch seconds. None of them is zero when there are no samples: that is missing data.
   */
  take: z.enum(['max', 'min', 'last', 'sum', 'count', 'age']).default('last'),
});
export type Measure = z.output<typeof measure>;

/** A rule of `plugins.config.ts` (O17, R28). */
export const ruleOptions = z
  .strictObject({
    /** Part of an actor's name and of labels. */
    name: z.string().regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/),
    /** What people read, and the name under which it is upserted elsewhere. */
    title: z.string().min(1).max(120),
    severity: z.enum(['info', 'warning', 'critical']).default('warning'),
    measure,
    /** Wrong when greater than this. */
    above: z.number().optional(),
    /** Wrong when less than this. */
    below: z.number().optional(),
    /** The time that an evaluation covers. */
    window: duration('10s', '30d'),
    /** Between two evaluations. */
    every: duration('10s', '1d'),
    /** How long it must last before anybody is notified. */
    for: duration('0s', '7d').default('0s'),
    /** What missing data means: `ok` for a run that emits nothing while it is healthy, `fire` for a heartbeat. */
    onNoData: z.enum(['fire', 'ok']),
    /** What missing data means before the first sample: with `ok` a rule whose sender is not set up yet stays calm. */
    onNeverSeen: z.enum(['fire', 'ok']).default('fire'),
    /** An attribute whose values among the wrong samples are named, e.g. `source`. */
    nameBy: z.string().max(64).optional(),
    /** Another metric that distinguishes two causes: the text where it has samples, and where it has none either. */
    explain: z
      .strictObject({ measure, present: z.string().max(200), absent: z.string().max(200) })
      .optional(),
    labels: labels.default({}),
    runbook: z.string().max(500).optional(),
  })
  .refine(({ above, below }) => (above === undefined) !== (below === undefined), {
    message: 'give either above or below',
  });
export type Rule = z.output<typeof ruleOptions>;

/** The settings of a rule for its machine. */
export function settingsOf(rule: Rule): RuleSettings {
  const { name, title, severity, above, below, window, every, onNoData, onNeverSeen, labels, runbook } = rule;
  return {
    name,
    title,
    severity,
    condition: above === undefined ? { kind: 'below', than: below ?? 0 } : { kind: 'above', than: above },
    window,
    windowMs: msOf(window),
    everyMs: msOf(every),
    forMs: msOf(rule.for),
    onNoData,
    onNeverSeen,
    labels,
    ...(runbook !== undefined && { runbook }),
  };
}
