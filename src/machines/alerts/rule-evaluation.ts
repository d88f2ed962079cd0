/** What an evaluation means for a rule: whether its value is wrong, and whether its signal comes. */
import { moved } from '../clock-set.ts';
import type { RuleArgs, RuleContext, RuleLook } from './rule-shapes.ts';

/** Restarts that extend the wait for data. Without a limit, a runtime that restarts all the time would hide missing data. */
const RESTARTS_FORGIVEN = 3;

/** How long a signal must come without a gap until it is required. */
const STEADY_MS = 86_400_000;

/** The longest gap of which a runtime that was down may be the reason. */
const LONGEST_GAP_MS = 6 * 3_600_000;

/** Whether the value is wrong; what missing data means is the rule's choice, and never zero (O17). */
export function breached(args: RuleArgs): boolean {
  const { context, event } = args;
  if (event.type !== 'EVALUATED') return false;
  if (isSilent(args)) {
    // Data counts as missing only after a whole window in which it could have arrived.
    const fault = context.onNoData === 'fire' && isExpected(context);
    return fault && (context.firingSince !== undefined || watchedFor(args) >= context.windowMs);
  }
  const { kind, than } = context.condition;
  const value = event.value ?? than;
  return kind === 'above' ? value > than : value < than;
}

/**
 * Whether there is nothing to judge: no sample, or only old ones of a signal that is not required, as a trial of telemetry
 * leaves them.
 */
export function isSilent(args: RuleArgs): boolean {
  const { context, event } = args;
  if (event.type !== 'EVALUATED') return false;
  return event.value === undefined || (context.expect === 'steady' && !context.steady && !isFresh(args));
}

/** Whether the newest sample is recent. */
function isFresh({ context, event }: RuleArgs): boolean {
  if (event.type !== 'EVALUATED' || event.value === undefined) return false;
  return event.at - (event.newestAt ?? event.at) <= context.freshMs;
}

const isExpected = ({ expect, steady }: RuleContext): boolean =>
  expect === 'required' || (expect === 'steady' && steady);

/** Whether a signal that may never have come has been absent for so long that this is an alert of its own. */
export function unseen(args: RuleArgs): boolean {
  const { context, event } = args;
  if (event.type !== 'EVALUATED' || !isSilent(args)) return false;
  const { expect, steady, onNoData, seenAt = 0, lookedForSince, unseenAfterMs } = context;
  if (onNoData !== 'fire' || expect !== 'steady' || steady) return false;
  return event.at - Math.max(Math.min(lookedForSince, event.at), seenAt) >= unseenAfterMs;
}

/** How long data could have arrived by now, milliseconds. */
function watchedFor({ context, event }: RuleArgs): number {
  return 'at' in event ? event.at - context.watchingSince : 0;
}

/** Whether it has lasted long enough by now. */
export function overdueFor({ context, event }: RuleArgs): boolean {
  if (event.type !== 'EVALUATED') return false;
  return event.at - Math.min(context.breachSince ?? event.at, event.at) >= context.forMs;
}

/** A start of the runtime: missing data is given the time of the window again, but not for ever. */
export function restarted({ context, event }: RuleArgs): Partial<RuleContext> {
  if (event.type !== 'WATCH') return {};
  if (context.watchingSince === 0) return { watchingSince: event.at, lookedForSince: event.at };
  const restarts = context.restarts + 1;
  return restarts > RESTARTS_FORGIVEN ? {} : { watchingSince: event.at, restarts };
}

/**
 * The clock was set. Nothing becomes overdue by it, and missing data is given the time of the window again: samples that came
 * before have times outside of it.
 */
export function followClock({ context, event }: RuleArgs): Partial<RuleContext> {
  if (event.type !== 'CLOCK_SET' || !Number.isFinite(event.at)) return {};
  return {
    ...moved(
      context,
      event.byMs,
      'lookedForSince',
      'seenAt',
      'comesSince',
      'evaluatedAt',
      'breachSince',
      'firingSince',
    ),
    ...(context.watchingSince > 0 && { watchingSince: event.at }),
  };
}

/** The result of an evaluation. */
export function evaluated(args: RuleArgs): Partial<RuleContext> {
  const { context, event } = args;
  if (event.type !== 'EVALUATED') return {};
  const wrong = breached(args);
  return {
    evaluations: context.evaluations + (event.looks ?? 1),
    evaluatedAt: event.at,
    // After a clock was set back, the time of watching begins anew.
    watchingSince: event.at < context.watchingSince ? event.at : context.watchingSince,
    lookedForSince: event.at < context.lookedForSince ? event.at : context.lookedForSince,
    ...arrival(args),
    ...(event.value !== undefined && { restarts: 0 }),
    ...(event.places !== undefined && event.places.length > 0 && { places: event.places }),
    value: event.value,
    finding: event.finding,
    failures: 0,
    failure: undefined,
    breachSince: wrong ? (context.breachSince ?? event.at) : undefined,
    firingSince: wrong ? (context.firingSince ?? event.at) : undefined,
  };
}

/** Whether and since when the signal comes. Nothing is known of a time in which the runtime did not watch. */
function arrival(args: RuleArgs): Partial<RuleContext> {
  const { context, event } = args;
  if (event.type !== 'EVALUATED') return {};
  const { comes, comesSince, seenAt = 0, steady, windowMs } = context;
  if (!isFresh(args)) return watchedFor(args) < windowMs ? {} : { comes: false };
  const hasGap = !comes || event.at - seenAt > Math.max(LONGEST_GAP_MS, windowMs);
  const since = hasGap || comesSince === undefined || event.at < comesSince ? event.at : comesSince;
  return {
    seenAt: event.newestAt ?? event.at,
    comes: true,
    comesSince: since,
    steady: steady || event.at - since >= STEADY_MS,
  };
}

/** Failures in a row that are recorded one by one; from then on a rule counts as one that cannot be evaluated. */
const FAILURES_RECORDED = 3;

/** Whether an evaluation changes anything but the number of evaluations and their time: a verdict, a value, what is known of the signal. */
export function isNews(
  { value, context }: { readonly value: unknown; readonly context: RuleContext },
  look: RuleLook,
): boolean {
  if (look.type === 'EVALUATION_FAILED')
    return context.failures < FAILURES_RECORDED || look.reason !== context.failure;
  const args = { context, event: look };
  const [verdict] = typeof value === 'object' && value !== null ? Object.keys(value) : [];
  // The verdict says whether it fires; of the signal's time, the newest sample is enough once an hour.
  const { evaluations: _, evaluatedAt, seenAt, firingSince, ...facts } = evaluated(args);
  const present: Readonly<Record<string, unknown>> = { ...context };
  return (
    verdict !== verdictAfter(args) ||
    Object.entries(facts).some(([name, fact]) => JSON.stringify(present[name]) !== JSON.stringify(fact))
  );
}

/** The verdict that an evaluation leads to. */
function verdictAfter(args: RuleArgs): 'ok' | 'pending' | 'firing' | 'noData' | 'unseen' {
  if (breached(args)) return overdueFor(args) ? 'firing' : 'pending';
  if (unseen(args)) return 'unseen';
  return isSilent(args) ? 'noData' : 'ok';
}
