import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { ColumnarDatabaseToken } from '../../../core/contracts/columnar-database.ts';
import { ScheduledRunsToken } from '../../../core/contracts/jobs.ts';
import { Semaphore } from '../../../core/host/concurrency.ts';
import { identityOf } from '../../../core/host/identity.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { LogEvent } from '../../../core/kernel/log/record.ts';
import type { RuleContext, RuleSettings } from '../../../machines/alerts/rule-shapes.ts';
import { ruleActor, UNEVALUATED_KEY, unevaluatedActor } from '../actors.ts';
import { evaluate } from './evaluate.ts';
import { atHome, type Rule, settingsOf } from './rule.ts';

/** Queries to the database that run at a time. */
const QUERIES = 4;
const QUERY_TIMEOUT_MS = 30_000;
/** How long an evaluation may take, the wait for those before it included, milliseconds. */
const EVALUATION_TIMEOUT_MS = 600_000;
/** Characters of a reason that are kept. */
const REASON_KEPT = 300;

/** Whether a rule could be evaluated, where that has changed. */
const ruleSeen = defineTopic(
  'alerts.rule_seen',
  z.object({ at: z.number(), rule: z.string(), reason: z.string().exactOptional() }),
  'A rule cannot be evaluated (`reason`), or can be again.',
);

/** How the definition of a rule changed. */
export interface DefinedRule {
  readonly name: string;
  readonly title: string;
  readonly change: 'created' | 'changed' | 'unchanged' | 'removed';
}

/** Registers the actors of the rules, and the effect that evaluates one. */
export function registerRules(context: PluginContext, listed: readonly Rule[]): void {
  const rules = new Map(listed.map((rule) => [rule.name, rule]));
  const queries = new Semaphore(QUERIES);
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
    async (
      { rule: name },
      { signal, correlation, cause },
      { actors, bus, clock, dataDir, find },
    ): Promise<LogEvent> => {
      const seen = (reason?: string) => {
        if (isFailing(actors, name) === (reason !== undefined)) return;
        const change = { at: clock.now(), rule: name, ...(reason !== undefined && { reason }) };
        bus.publish(ruleSeen, change, { correlation, cause });
      };
      const failed = (reason: string) => {
        seen(reason);
        return { type: 'EVALUATION_FAILED', at: clock.now(), reason };
      };
      const listed = rules.get(name);
      if (!listed) return failed('it is no longer listed');
      const rule = atHome(listed, identityOf(dataDir));
      const sources = { database: find(ColumnarDatabaseToken), runs: find(ScheduledRunsToken) };
      try {
        const evaluation = await queries.run(() => {
          const bounded = AbortSignal.any([signal, AbortSignal.timeout(QUERY_TIMEOUT_MS)]);
          return evaluate(rule, sources, clock.now(), bounded);
        });
        seen();
        return { type: 'EVALUATED', at: clock.now(), ...evaluation };
      } catch (error) {
        if (!isCoded(error)) throw error;
        // The database repeats the whole query in its refusal, behind these words.
        const { reason = error.what } = isCoded(error, 'HF_ALERTS_UNSEEN') ? error.details : {};
        return failed((String(reason).split(' in scope ')[0] ?? '').slice(0, REASON_KEPT));
      }
    },
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

/** Whether a rule is listed among those that cannot be evaluated. */
function isFailing(actors: Pick<Services['actors'], 'get'>, rule: string): boolean {
  const { failing = {} } = actors.get(unevaluatedActor, UNEVALUATED_KEY)?.context ?? {};
  return Object.hasOwn(failing, rule);
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
