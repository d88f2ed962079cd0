import { z } from 'zod';
import { duration, msOf } from '../../../core/host/duration.ts';
import type { Identity } from '../../../core/host/identity.ts';
import { REPORT_MS, type RuleSettings } from '../../../machines/alerts/rule-shapes.ts';

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
  /** Only series of this host and instance, or of this host; `signals` of the options names another. */
  of: z.enum(['anywhere', 'host', 'instance']).default('anywhere'),
  /**
   * How the value is computed from the samples of the window. `count` is their number; `age` is the time since the
   * newest value, hours,
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
    /**
     * From when on missing data is a fault: from the beginning, once the signal has come for a day without a gap, or never.
     * `signals` of the options overrides it by the rule's name.
     */
    expect: z.enum(['required', 'steady', 'optional']).default('required'),
    /** How long a signal that is not required yet may be absent before that is an alert of its own. */
    unseenAfter: duration('1h', '30d').default('1d'),
    /** Failed runs of these jobs count as 1, as `holdfast jobs` lists them, whether telemetry is on or not. */
    runs: label.optional(),
    /** An attribute whose values among the wrong samples are named, e.g. `source`. */
    nameBy: z.string().max(64).optional(),
    /** Another metric that distinguishes causes. */
    explain: z
      .strictObject({
        measure,
        /** The text where it has samples in the window. */
        present: z.string().max(200),
        /** The text where it has none, though its sender sent before: only that makes its silence mean something. */
        absent: z.string().max(200),
        /** The text where it has none, and its sender was not seen in `lookBack` either. */
        unknown: z.string().max(300),
        /** Attributes of the sender's resource, one that goes on when the measured process ends. */
        sender: labels.default({}),
        lookBack: duration('1h', '30d').default('1d'),
      })
      .optional(),
    labels: labels.default({}),
    /** What the value is, for people, e.g. `hours since the last success`. */
    reads: z.string().min(1).max(100).optional(),
    /** What a person does first when it fires. */
    firstStep: z.string().min(1).max(500).optional(),
    runbook: z.string().max(500).optional(),
  })
  .refine(({ above, below }) => (above === undefined) !== (below === undefined), {
    message: 'give either above or below',
  });
export type Rule = z.output<typeof ruleOptions>;

/** The options for a rule's signal. */
export const signalOptions = z.strictObject({
  /** Whether it must come; see `expect` of a rule. */
  expect: z.enum(['required', 'steady', 'optional']).optional(),
  /** The host that sends it, its `host.name`. */
  host: label.optional(),
  /** The instance that sends it, its `service.instance.id`. */
  instance: label.optional(),
});
export type Signal = z.output<typeof signalOptions>;

/** A rule with the options for its signal. */
export function withSignal(rule: Rule, signal: Signal | undefined): Rule {
  if (!signal) return rule;
  const resource = {
    ...rule.measure.resource,
    ...(signal.host !== undefined && { 'host.name': signal.host }),
    ...(signal.instance !== undefined && { 'service.instance.id': signal.instance }),
  };
  return { ...rule, expect: signal.expect ?? rule.expect, measure: { ...rule.measure, resource } };
}

/** A rule whose series are those of this host and instance, where it is about them and nothing else is named. */
export function atHome(rule: Rule, { host, instance }: Identity): Rule {
  const { measure, explain } = rule;
  const own: Readonly<Record<Measure['of'], Readonly<Record<string, string>>>> = {
    anywhere: {},
    host: { 'host.name': host },
    instance: { 'host.name': host, 'service.instance.id': instance },
  };
  // A host that is named without an instance means every instance of it.
  const resource = measure.resource['host.name'] === undefined ? own[measure.of] : {};
  const filtered = { ...measure, resource: { ...resource, ...measure.resource } };
  if (!explain) return { ...rule, measure: filtered };
  const place =
    explain.measure.of === 'anywhere' ? {} : { 'host.name': filtered.resource['host.name'] ?? host };
  const explaining = { ...explain.measure, resource: { ...place, ...explain.measure.resource } };
  return { ...rule, measure: filtered, explain: { ...explain, measure: explaining } };
}

const HOUR_MS = 3_600_000;

/** The settings of a rule for its machine. */
export function settingsOf(rule: Rule): RuleSettings {
  const { name, title, severity, above, below, window, every, onNoData, expect, labels } = rule;
  const { reads, runbook, firstStep } = rule;
  return {
    name,
    title,
    severity,
    condition: above === undefined ? { kind: 'below', than: below ?? 0 } : { kind: 'above', than: above },
    window,
    windowMs: msOf(window),
    everyMs: msOf(every),
    // Only where nothing evaluates it any more does the machine itself ask for it.
    reportMs: REPORT_MS + 2 * msOf(every),
    forMs: msOf(rule.for),
    onNoData,
    expect,
    freshMs: Math.min(msOf(window), Math.max(2 * msOf(every), HOUR_MS)),
    unseenAfterMs: msOf(rule.unseenAfter),
    metric: rule.measure.metric,
    labels,
    ...(reads !== undefined && { reads }),
    ...(firstStep !== undefined && { firstStep }),
    ...(runbook !== undefined && { runbook }),
  };
}
