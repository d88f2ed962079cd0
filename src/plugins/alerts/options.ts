import { z } from 'zod';
import { duration, msOf } from '../../core/host/duration.ts';
import type { Step } from '../../machines/alerts/escalation.ts';
import { receiverOptions } from './receivers.ts';
import { documentedRules } from './rules/documented.ts';
import { ruleOptions, signalOptions, withSignal } from './rules/rule.ts';
import { uiOptions } from './rules/ui.ts';

const receiverName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}$/);
const severity = z.enum(['info', 'warning', 'critical']);

const route = z.strictObject({
  /** Names of alerts: whole, or the beginning followed by `*`. */
  alerts: z.array(z.string().min(1).max(100)).min(1).default(['*']),
  severities: z.array(severity).min(1).default(['info', 'warning', 'critical']),
  /** Receivers that are notified first, and those that follow if nobody has acknowledged the alert by then. */
  steps: z
    .array(
      z.strictObject({ to: z.array(receiverName).min(1).max(8), after: duration('0s', '7d').default('0s') }),
    )
    .min(1)
    .max(8),
  /** Between reminders after the last step, until it is over or acknowledged. */
  remind: duration('1m', '30d').default('4h'),
});
export type AlertRoute = z.output<typeof route>;

export const alertsOptions = z
  .strictObject({
    receivers: z.record(receiverName, receiverOptions).prefault({ 'cluster-edge': {}, 'cluster-infra': {} }),
    /** The first that fits counts. */
    routes: z
      .array(route)
      .max(100)
      .prefault([
        { alerts: ['uptime.*', 'uptime-monitor.*'], steps: [{ to: ['cluster-edge'] }] },
        { steps: [{ to: ['cluster-infra'] }] },
      ]),
    rules: z
      .array(ruleOptions)
      .max(5_000)
      .prefault(() => [...documentedRules]),
    /**
     * Facts about the signals of rules, by the rule's name: whether the signal is required, and which host and instance
     * sends it.
     */
    signals: z.record(z.string(), signalOptions).default({}),
    /** Where the pages of `docs/` can be read, for the link in each alert: a path in the package without it. */
    runbooks: z.url({ protocol: /^https?$/ }).optional(),
    /** `alerts bootstrap` makes alerts of it agree with the rules. */
    hyperdx: uiOptions.optional(),
  })
  .superRefine(({ receivers, routes, rules, signals, hyperdx }, context) => {
    for (const name of Object.keys(signals)) {
      if (rules.some((rule) => rule.name === name)) continue;
      context.addIssue({ code: 'custom', path: ['signals', name], message: `there is no rule ${name}` });
    }
    for (const name of Object.keys(hyperdx?.tiles ?? {})) {
      if (rules.some((rule) => rule.name === name)) continue;
      const message = `there is no rule ${name}`;
      context.addIssue({ code: 'custom', path: ['hyperdx', 'tiles', name], message });
    }
    for (const [index, { steps }] of routes.entries()) {
      for (const name of steps.flatMap(({ to }) => to)) {
        if (Object.hasOwn(receivers, name)) continue;
        const names = Object.keys(receivers).join(', ');
        context.addIssue({
          code: 'custom',
          path: ['routes', index, 'steps'],
          message: `there is no receiver ${name}; there are ${names}`,
        });
      }
    }
    for (const [index, { name, title }] of rules.entries()) {
      const earlier = rules.slice(0, index);
      if (earlier.some((rule) => rule.name === name || rule.title === title)) {
        context.addIssue({
          code: 'custom',
          path: ['rules', index],
          message: `${name} or its title is listed twice`,
        });
      }
    }
  });
export type AlertsOptions = z.output<typeof alertsOptions>;

/** Whether a name fits a pattern: whole, or its beginning followed by `*`. */
export function fits(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
}

/** The options with what they say of the rules' signals. */
export function withSignals(options: AlertsOptions): AlertsOptions {
  const { rules, signals } = options;
  return { ...options, rules: rules.map((rule) => withSignal(rule, signals[rule.name])) };
}

/** Who is notified of an alert, step by step; nobody when no route fits it. */
export function escalationFor(
  routes: readonly AlertRoute[],
  name: string,
  severity: AlertRoute['severities'][number],
): { readonly steps: readonly Step[]; readonly remindMs: number } {
  const found = routes.find(
    ({ alerts, severities }) =>
      severities.includes(severity) && alerts.some((pattern) => fits(pattern, name)),
  );
  if (!found) return { steps: [], remindMs: 86_400_000 };
  const steps = found.steps.map(({ to, after }) => ({ to, afterMs: msOf(after) }));
  return { steps, remindMs: msOf(found.remind) };
}
