import { isDeepStrictEqual } from 'node:util';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import type { RuleContext, RuleSettings } from '../../../machines/alerts/rule-shapes.ts';
import { ruleActor, UNEVALUATED_KEY, unevaluatedActor } from '../actors.ts';
import { isFailing, type RuleLooks, ruleSeen } from './looks.ts';
import { type Rule, settingsOf } from './rule.ts';

/** How long an evaluation may take, the wait for those before it included, milliseconds. */
const EVALUATION_TIMEOUT_MS = 600_000;
/** How the definition of a rule changed. */
export interface DefinedRule {
  readonly name: string;
  readonly title: string;
  readonly change: 'created' | 'changed' | 'unchanged' | 'removed';
}

/** Registers the actors of the rules, and the effect that evaluates one. */
export function registerRules(
  context: PluginContext<{ readonly looks: RuleLooks }>,
  listed: readonly Rule[],
): void {
  const rules = new Map(listed.map((rule) => [rule.name, rule]));
  context.actor({
    ...ruleActor,
    input: (key) => {
      const rule = rules.get(key);
      return rule && settingsOf(rule);
    },
  });
  context.actor(unevaluatedActor);
  context.route(ruleSeen, unevaluatedActor, ({ payload: { at, rule, reason } }) => {
    const event = reason === undefined ? { type: 'RECOVERED' as const } : { type: 'FAILED' as const, reason };
    return [{ key: UNEVALUATED_KEY, event: { ...event, at, rule } }];
  });
  context.effect<{ rule: string }>(
    'alerts.evaluate',
    ({ rule }, { signal, correlation, cause }, { looks }) =>
      looks.recorded(rule, signal, { correlation, cause }),
    { onRecovery: 'retry', adapter: 'columnar.database', deadlineMs: EVALUATION_TIMEOUT_MS },
  );
}

/**
 * Makes the actors agree with the list: new and changed rules are evaluated at once, and those that are no longer listed
 * end. Called again with the same list it changes nothing.
 */
export function defineRules(
  rules: readonly Rule[],
  { actors, clock }: Pick<Services, 'actors' | 'clock'>,
): readonly DefinedRule[] {
  const at = clock.now();
  const listed = rules.map((rule): DefinedRule => {
    const { name, title } = rule;
    const settings = settingsOf(rule);
    const existing = actors.get(ruleActor, name);
    if (!existing) {
      // Its `init` has these settings, and the machine begins with an evaluation.
      actors.send(ruleActor, name, { type: 'WATCH', at });
      return { name, title, change: 'created' };
    }
    const isRemoved = existing.value === 'removed';
    if (!isRemoved && isSame(existing.context, settings)) return { name, title, change: 'unchanged' };
    actors.send(ruleActor, name, { type: 'DEFINE', at, settings });
    return { name, title, change: isRemoved ? 'created' : 'changed' };
  });
  const names = new Set(rules.map(({ name }) => name));
  const removed = actors.list(ruleActor).flatMap(({ key, value, context }): DefinedRule[] => {
    const { name, title } = context;
    if (names.has(name) || value === 'removed') return [];
    actors.send(ruleActor, key, { type: 'REMOVE', at });
    if (isFailing(actors, key))
      actors.send(unevaluatedActor, UNEVALUATED_KEY, { type: 'RECOVERED', at, rule: key });
    return [{ name, title, change: 'removed' }];
  });
  return [...listed, ...removed];
}

/**
 * At a start, rules that fire on missing data wait for a whole window again, because no data was received meanwhile.
 */
export function watchRules({ actors, clock }: Pick<Services, 'actors' | 'clock'>): void {
  const at = clock.now();
  for (const { key, value, context } of actors.list(ruleActor)) {
    if (context.onNoData === 'fire' && value !== 'removed')
      actors.send(ruleActor, key, { type: 'WATCH', at });
  }
}

function isSame(context: RuleContext, settings: RuleSettings): boolean {
  const fields: Readonly<Record<string, unknown>> = { ...context };
  return (
    context.runbook === settings.runbook &&
    context.firstStep === settings.firstStep &&
    context.reads === settings.reads &&
    Object.entries(settings).every(([name, value]) => isDeepStrictEqual(fields[name], value))
  );
}
