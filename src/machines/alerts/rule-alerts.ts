/** The alerts that a rule raises: that its condition holds, and that its signal has never come. */
import type { Alert } from '../effect.ts';
import type { Condition, RuleArgs, RuleContext, RuleEvent } from './rule-shapes.ts';

const HOUR_MS = 3_600_000;

/** The alert that the condition of a rule holds, or its end. */
export function ruleAlert({ context, event }: RuleArgs, state: 'firing' | 'resolved'): Alert {
  const { name, title, severity, condition, window, reads, labels } = context;
  const { value, finding } = event.type === 'EVALUATED' ? event : context;
  const found = reads === undefined ? `${value} in ${window}` : `${value} ${reads}`;
  const seen = value === undefined ? `no data in ${window}` : found;
  const wrong = `it is wrong when ${conditionText(condition)}${value === undefined ? ' or silent' : ''}`;
  const why =
    state === 'firing'
      ? [seen, wrong, value === undefined && expectation(context)].filter(Boolean).join('; ')
      : event.type === 'REMOVE'
        ? 'the rule is no longer listed'
        : seen;
  return {
    name: `rule.${name}`,
    severity: state === 'firing' ? severity : 'info',
    text: `${title}: ${why}${finding === undefined ? '' : `; ${finding}`}.`,
    labels: { ...labels, rule: name, state },
    measured: { ...measuredBy(context, event), title, ...(value !== undefined && { value }) },
  };
}

/**
 * The alert that a signal which is not required yet does not come, or its end. It is a warning: perhaps nobody means to
 * send it, and the text names the setting that says so.
 */
export function unseenAlert({ context, event }: RuleArgs, state: 'firing' | 'resolved'): Alert {
  const { name, title, metric, seenAt, comesSince, lookedForSince, labels } = context;
  const at = 'at' in event ? event.at : lookedForSince;
  const setting = `signals: { '${name}': { expect: 'optional' } }`;
  const since =
    seenAt === undefined
      ? `no sample of ${metric} has ever come, for ${hours(at - lookedForSince)} now`
      : `${metric} came for ${hours(seenAt - (comesSince ?? seenAt))}, and not for ${hours(at - seenAt)} now`;
  const text =
    state === 'firing'
      ? `${title}: unknown, because ${since}. Until it has come for a day its absence is no fault: 'required' in place of 'optional' makes it one, and alerts({ ${setting} }) in plugins.config.ts ends this alert.`
      : event.type === 'REMOVE'
        ? `${title}: the rule is no longer listed.`
        : event.type === 'EVALUATED' && event.value !== undefined
          ? `${title}: ${metric} comes now.`
          : `${title}: ${metric} is no longer waited for.`;
  return {
    name: `rule.${name}.unseen`,
    severity: state === 'firing' ? 'warning' : 'info',
    text,
    labels: { ...labels, rule: name, state },
    measured: { ...measuredBy(context, event), title: `${title}: signal never seen` },
  };
}

function measuredBy(context: RuleContext, event: RuleEvent) {
  const { condition, window, runbook, firstStep } = context;
  const { places = context.places } = event.type === 'EVALUATED' ? event : context;
  return {
    threshold: conditionText(condition),
    window,
    places: places.length > 0 ? places : context.places,
    ...(runbook !== undefined && { runbook }),
    ...(firstStep !== undefined && { firstStep }),
  };
}

/** Why missing data is a fault, and the setting that decides it. */
function expectation({ name, expect }: RuleContext): string {
  const setting = `signals['${name}'] of alerts() in plugins.config.ts`;
  return expect === 'required'
    ? `its signal is required by ${setting}`
    : `its signal is required since it came for a day, unless ${setting} says 'optional'`;
}

/** e.g. `above 0` */
function conditionText({ kind, than }: Condition): string {
  return `${kind} ${than}`;
}

const hours = (ms: number): string => `${Math.max(0, Math.round((ms / HOUR_MS) * 10) / 10)} h`;
