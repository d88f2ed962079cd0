import { isDeepStrictEqual } from 'node:util';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { actorRef } from '../../../core/kernel/ids.ts';
import type { RuleContext } from '../../../machines/alerts/rule.ts';
import { RULE_ACTOR } from '../raised.ts';
import { type Rule, settingsOf } from './rule.ts';

/** What became of each rule. */
export interface Defined {
  readonly name: string;
  readonly title: string;
  readonly change: 'created' | 'changed' | 'unchanged' | 'removed';
}

/**
 * Makes the actors agree with the list: new rules are looked at at once, changed ones anew, and those that are no longer
 * listed end. Done twice, the second time changes nothing.
 */
export function defineRules(
  rules: readonly Rule[],
  { actors, clock }: Pick<Services, 'actors' | 'clock'>,
): readonly Defined[] {
  const at = clock.now();
  const listed = rules.map((rule): Defined => {
    const { name, title } = rule;
    const ref = actorRef(RULE_ACTOR, name);
    const settings = settingsOf(rule);
    const state = actors.snapshot(ref);
    const known = state?.context as unknown as RuleContext | undefined;
    if (known && state?.value !== 'removed' && isSame(known, settings))
      return { name, title, change: 'unchanged' };
    if (!state) {
      // It begins with these settings, and looks at once.
      actors.send(ref, { type: 'WATCH', at });
      return { name, title, change: 'created' };
    }
    actors.send(ref, { type: 'DEFINE', at, settings: { ...settings } as never });
    return { name, title, change: state.value === 'removed' ? 'created' : 'changed' };
  });
  const names = new Set(rules.map(({ name }) => name));
  const gone = actors.list(RULE_ACTOR).flatMap(({ ref, value, context }): Defined[] => {
    const { name, title } = context as unknown as RuleContext;
    if (names.has(name) || value === 'removed') return [];
    actors.send(ref, { type: 'REMOVE', at });
    return [{ name, title, change: 'removed' }];
  });
  return [...listed, ...gone];
}

/** At a start: rules for which silence is a fault give it the time of their window, for nobody listened meanwhile. */
export function watchRules({ actors, clock }: Pick<Services, 'actors' | 'clock'>): void {
  const at = clock.now();
  for (const { ref, value, context } of actors.list(RULE_ACTOR)) {
    const { onNoData } = context as unknown as RuleContext;
    if (onNoData === 'fire' && value !== 'removed') actors.send(ref, { type: 'WATCH', at });
  }
}

function isSame(known: RuleContext, settings: object): boolean {
  const { runbook, ...rest } = known;
  const kept = { ...(runbook !== undefined && { runbook }), ...rest } as Record<string, unknown>;
  const { runbook: wanted, ...others } = settings as RuleContext;
  return (
    runbook === wanted && Object.entries(others).every(([key, value]) => isDeepStrictEqual(kept[key], value))
  );
}
