import type { Alert } from '../effect.ts';
import { type Condition, RESTARTS_FORGIVEN, type RuleContext, type RuleEvent } from './rule-shapes.ts';

export interface Args {
  readonly context: RuleContext;
  readonly event: RuleEvent;
}

export type Evaluated = Extract<RuleEvent, { type: 'EVALUATED' }>;

/** Whether what was found is wrong: missing data is what the rule says of it, and never zero (O17). */
export function breached({ context, event }: Args): boolean {
  if (event.type !== 'EVALUATED') return false;
  if (event.value === undefined) {
    // Nobody who has just begun to listen knows that it is silent.
    const heardLongEnough = event.at - context.watchingSince >= context.windowMs;
    const expected = context.onNoData === 'fire' && (context.seen || context.onNeverSeen === 'fire');
    return expected && (context.firingSince !== undefined || heardLongEnough);
  }
  const { kind, than } = context.condition;
  return kind === 'above' ? event.value > than : event.value < than;
}

/** Whether it has lasted long enough by now. */
export function overdueFor({ context, event }: Args): boolean {
  if (event.type !== 'EVALUATED') return false;
  return event.at - Math.min(context.breachSince ?? event.at, event.at) >= context.forMs;
}

/** A start of ours: what came meanwhile was not heard, so the silence is given its time again, but not for ever. */
export function restarted({ context, event }: Args): Partial<RuleContext> {
  if (event.type !== 'WATCH') return {};
  if (context.watchingSince === 0) return { watchingSince: event.at };
  const restarts = context.restarts + 1;
  return restarts > RESTARTS_FORGIVEN ? {} : { watchingSince: event.at, restarts };
}

/** What a look leaves behind. */
export function settled(args: Args & { event: Evaluated }): Partial<RuleContext> {
  const { context, event } = args;
  const wrong = breached(args);
  return {
    looks: context.looks + 1,
    lookedAt: event.at,
    // A clock that was ahead and is set back must not make it deaf.
    watchingSince: event.at < context.watchingSince ? event.at : context.watchingSince,
    ...(event.value !== undefined && { seen: true, restarts: 0 }),
    value: event.value,
    finding: event.finding,
    misses: 0,
    missed: undefined,
    breachSince: wrong ? (context.breachSince ?? event.at) : undefined,
    firingSince: wrong ? (context.firingSince ?? event.at) : undefined,
  };
}

/** e.g. `above 0` */
function conditionText({ kind, than }: Condition): string {
  return `${kind} ${than}`;
}

/** What people are told of a rule. */
export function ruleAlert({ context, event }: Args, state: 'firing' | 'resolved'): Alert {
  const { name, title, severity, condition, window, labels, runbook } = context;
  const { value, finding } = event.type === 'EVALUATED' ? event : context;
  const seen = value === undefined ? `no data in ${window}` : `${value} in ${window}`;
  const why =
    state === 'firing'
      ? `${seen}; it is wrong when ${conditionText(condition)}${value === undefined ? ' or silent' : ''}`
      : event.type === 'REMOVE'
        ? 'the rule is no longer listed'
        : seen;
  return {
    name: `rule.${name}`,
    severity: state === 'firing' ? severity : 'info',
    text: `${title}: ${why}${finding === undefined ? '' : `; ${finding}`}.`,
    labels: { ...labels, rule: name, state },
    measured: {
      title,
      ...(value !== undefined && { value }),
      threshold: conditionText(condition),
      window,
      ...(runbook !== undefined && { runbook }),
    },
  };
}
