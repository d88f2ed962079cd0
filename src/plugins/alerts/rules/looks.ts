import { z } from 'zod';
import { defineTopic } from '../../../bus/topic.ts';
import { ColumnarDatabaseToken } from '../../../core/contracts/columnar-database.ts';
import { ScheduledRunsToken } from '../../../core/contracts/jobs.ts';
import { clockContextOf } from '../../../core/host/clock/records.ts';
import { Semaphore } from '../../../core/host/concurrency.ts';
import { msOf } from '../../../core/host/duration.ts';
import { identityOf } from '../../../core/host/identity.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { newCorrelation } from '../../../core/kernel/clock.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { CLOCK } from '../../../core/kernel/log/record.ts';
import { isNews } from '../../../machines/alerts/rule-evaluation.ts';
import { REPORT_MS, type RuleLook } from '../../../machines/alerts/rule-shapes.ts';
import { ruleActor, UNEVALUATED_KEY, unevaluatedActor } from '../actors.ts';
import { type Evaluation, evaluate } from './evaluate.ts';
import { atHome, type Rule } from './rule.ts';

/** Queries to the database that run at a time. */
const QUERIES = 4;
const QUERY_TIMEOUT_MS = 30_000;
/** The longest wait after a failed evaluation, milliseconds. */
const RETRY_MS = 30_000;
/** Characters of a reason that are kept. */
const REASON_KEPT = 300;
/** Why a rule is not evaluated while the clock is set otherwise than time passed. */
const WRONG_CLOCK = 'the clock was set, and samples of other clocks are not found by their times';

/** Whether a rule could be evaluated, where that has changed. */
export const ruleSeen = defineTopic(
  'alerts.rule_seen',
  z.object({ at: z.number(), rule: z.string(), reason: z.string().exactOptional() }),
  'A rule cannot be evaluated (`reason`), or can be again.',
);

/** Where an evaluation stands in the log. */
interface Origin {
  readonly correlation: string;
  readonly cause?: number;
}

/**
 * Evaluates the rules at their intervals, and sends a rule's machine what changes it. Evaluations that change nothing
 * are counted here, and the next one that is recorded carries their number, at the latest after an hour.
 */
export class RuleLooks {
  readonly #services: Services;
  readonly #rules: ReadonlyMap<string, Rule>;
  readonly #queries = new Semaphore(QUERIES);
  readonly #stop = new AbortController();
  readonly #waits = new Map<string, () => void>();
  /** The newest evaluation of a rule that is not recorded, with the number of those. */
  readonly #unrecorded = new Map<string, RuleLook & { readonly looks: number }>();

  constructor(services: Services, rules: readonly Rule[]) {
    this.#services = services;
    this.#rules = new Map(rules.map((rule) => [rule.name, rule]));
  }

  /** Goes on where the log ends: a rule whose evaluation is due is evaluated at once. */
  start(): void {
    const { actors, clock } = this.#services;
    actors.onClockJump(({ byMs }) => {
      for (const [name, look] of this.#unrecorded)
        this.#unrecorded.set(name, { ...look, at: look.at + byMs });
    });
    for (const name of this.#rules.keys()) {
      const { everyMs, evaluatedAt = 0, failures } = actors.get(ruleActor, name)?.context ?? {};
      if (everyMs === undefined) continue;
      const waitMs = (failures ?? 0) > 0 ? Math.min(everyMs, RETRY_MS) : everyMs;
      this.#wait(name, Math.min(Math.max(0, evaluatedAt + waitMs - clock.now()), waitMs));
    }
  }

  stop(): void {
    this.#stop.abort();
    for (const cancel of this.#waits.values()) cancel();
  }

  /** When a rule was last evaluated and nothing was recorded of it, epoch milliseconds. */
  lookedAt(rule: string): number | undefined {
    return this.#unrecorded.get(rule)?.at;
  }

  /** The evaluation that a rule's machine asked for; it carries the number of those since the last record. */
  async recorded(name: string, signal: AbortSignal, origin: Origin): Promise<RuleLook> {
    const look = await this.#evaluated(name, signal, origin);
    const { looks = 0 } = this.#unrecorded.get(name) ?? {};
    this.#unrecorded.delete(name);
    this.#waitAfter(name, look);
    return looks === 0 ? look : { ...look, looks: looks + 1 };
  }

  async #evaluated(name: string, signal: AbortSignal, origin: Origin): Promise<RuleLook> {
    const { actors, bus, clock, dataDir, find } = this.#services;
    const seen = (reason?: string) => {
      if (isFailing(actors, name) === (reason !== undefined)) return;
      bus.publish(ruleSeen, { at: clock.now(), rule: name, ...(reason !== undefined && { reason }) }, origin);
    };
    const failed = (reason: string): RuleLook => {
      seen(reason);
      return { type: 'EVALUATION_FAILED', at: clock.now(), reason };
    };
    const listed = this.#rules.get(name);
    if (!listed) return failed('it is no longer listed');
    const rule = atHome(listed, identityOf(dataDir));
    const sources = { database: find(ColumnarDatabaseToken), runs: find(ScheduledRunsToken) };
    try {
      actors.lookAtClock();
      const evaluation = await this.#queries.run(() => {
        const bounded = AbortSignal.any([signal, AbortSignal.timeout(QUERY_TIMEOUT_MS)]);
        return evaluate(rule, sources, clock.now(), bounded);
      });
      if (this.#isByWrongClock(rule, evaluation)) return failed(WRONG_CLOCK);
      seen();
      return { type: 'EVALUATED', at: clock.now(), ...evaluation };
    } catch (error) {
      if (!isCoded(error)) throw error;
      // The database repeats the whole query in its refusal, behind these words.
      const { reason = error.what } = isCoded(error, 'HF_ALERTS_UNSEEN') ? error.details : {};
      return failed((String(reason).split(' in scope ')[0] ?? '').slice(0, REASON_KEPT));
    }
  }

  /**
   * Whether samples may only be missing, or a time only be old, because the clock was set by more than the rule's window:
   * whoever sends from elsewhere has another clock. That is no reason to fire, or to end.
   */
  #isByWrongClock({ name, window, onNoData, measure }: Rule, { value, newestAt }: Evaluation): boolean {
    const { actors } = this.#services;
    const { aheadMs = 0 } = clockContextOf(actors.snapshot(CLOCK.actor)) ?? {};
    if (Math.abs(aheadMs) <= msOf(window)) return false;
    if (value !== undefined) return measure.take === 'age' && newestAt !== undefined;
    return onNoData === 'fire' || actors.get(ruleActor, name)?.context.firingSince !== undefined;
  }

  #wait(name: string, ms: number): void {
    this.#waits.get(name)?.();
    if (this.#stop.signal.aborted) return;
    this.#waits.set(
      name,
      this.#services.clock.after(ms, () => void this.#look(name)),
    );
  }

  #waitAfter(name: string, { type }: Pick<RuleLook, 'type'>): void {
    const everyMs = this.#services.actors.get(ruleActor, name)?.context.everyMs ?? REPORT_MS;
    this.#wait(name, type === 'EVALUATION_FAILED' ? Math.min(everyMs, RETRY_MS) : everyMs);
  }

  /** Never rejects. */
  async #look(name: string): Promise<void> {
    const { actors, clock, logger } = this.#services;
    const origin = { correlation: newCorrelation() };
    let look: RuleLook | undefined;
    if (isResting(actors.get(ruleActor, name)?.value)) {
      look = await this.#evaluated(name, this.#stop.signal, origin).catch((error: unknown): RuleLook => {
        if (!this.#stop.signal.aborted) logger.warn({ err: error, rule: name }, 'alerts.rule_not_evaluated');
        const reason = 'the evaluation failed, see the log line alerts.rule_not_evaluated';
        return { type: 'EVALUATION_FAILED', at: clock.now(), reason };
      });
    }
    if (this.#stop.signal.aborted) return;
    const rule = actors.get(ruleActor, name);
    if (rule?.value === 'removed') return;
    // Meanwhile the machine may have begun an evaluation of its own, which counts.
    if (look && rule && isResting(rule.value)) {
      const before = this.#unrecorded.get(name);
      if (isNews(rule, look)) {
        // The log first hears how long all was as before, and then the change.
        if (before) actors.send(ruleActor, name, before, origin);
        this.#unrecorded.delete(name);
        actors.send(ruleActor, name, look, origin);
      } else if (clock.now() - rule.at >= REPORT_MS) {
        this.#unrecorded.delete(name);
        actors.send(ruleActor, name, before ? { ...look, looks: before.looks + 1 } : look, origin);
      } else {
        this.#unrecorded.set(name, { ...look, looks: (before?.looks ?? 0) + 1 });
      }
    }
    this.#waitAfter(name, look ?? { type: 'EVALUATED' });
  }
}

/** Whether a rule is between two evaluations. */
function isResting(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.values(value).includes('resting');
}

/** Whether a rule is listed among those that cannot be evaluated. */
export function isFailing(actors: Pick<Services['actors'], 'get'>, rule: string): boolean {
  const { failing = {} } = actors.get(unevaluatedActor, UNEVALUATED_KEY)?.context ?? {};
  return Object.hasOwn(failing, rule);
}
