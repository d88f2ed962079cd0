import type { ActorSystem } from '../../core/kernel/actors/system.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { OutboxContext } from '../../machines/alerts/outbox-shapes.ts';
import type { RuleContext } from '../../machines/alerts/rule-shapes.ts';
import { verdictOf } from './describe.ts';
import { ALERT_ACTOR, OUTBOX_ACTOR, RULE_ACTOR } from './raised.ts';

/** For health pages: what fires, and which receivers take nothing. */
export function alertsHealth(actors: Pick<ActorSystem, 'list'>): JsonObject {
  const rules = actors.list(RULE_ACTOR).filter(({ value }) => value !== 'removed');
  const firing = actors.list(ALERT_ACTOR).filter(({ value }) => typeof value === 'object').length;
  const blind = rules.filter(({ context }) => (context as unknown as RuleContext).misses > 2).length;
  const away = actors.list(OUTBOX_ACTOR).flatMap(({ context }) => {
    const { receiver, failures, queue, reason } = context as unknown as OutboxContext;
    return failures > 0
      ? [`${receiver} takes no alerts (${reason ?? 'no answer'}), ${queue.length} wait`]
      : [];
  });
  if (blind > 0) away.push(`${blind} rules can not look at the database`);
  const verdicts = Object.groupBy(rules, ({ value }) => verdictOf(value));
  return {
    ...(away.length > 0 && { ok: false, reason: away.join('; ') }),
    firing,
    rules: Object.fromEntries(Object.entries(verdicts).map(([verdict, list = []]) => [verdict, list.length])),
  };
}
