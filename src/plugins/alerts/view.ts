import { counted } from '../../core/host/terminal.ts';
import type { ActorSystem } from '../../core/kernel/actors/system.ts';
import { isoTime } from '../../core/kernel/clock.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { AlertContext } from '../../machines/alerts/escalation.ts';
import type { OutboxContext } from '../../machines/alerts/outbox-queue.ts';
import type { RuleContext } from '../../machines/alerts/rule-shapes.ts';
import type { Silence } from '../../machines/alerts/silences.ts';
import { alertActor, outboxActor, ruleActor } from './actors.ts';
import { activeSilences } from './routing.ts';
import { verdictOf } from './words.ts';

/** A condition, as commands show it. Times are ISO texts. */
export interface AlertView {
  readonly alert: string;
  readonly state: 'firing' | 'acknowledged' | 'silenced' | 'quiet';
  readonly severity: string;
  readonly title: string;
  readonly text: string;
  readonly since: string;
  /** How often it was raised since. */
  readonly count: number;
  /** Receivers that are to be notified. */
  readonly informed: readonly string[];
  /** Receivers that accepted the newest notice, and when. */
  readonly taken: Readonly<Record<string, string>>;
  /** Receivers whose queue still contains a notice of it. */
  readonly waiting: readonly string[];
  readonly acknowledged?: { readonly by: string; readonly until: string; readonly note?: string };
  readonly silentUntil?: string;
}

export interface RuleView {
  readonly rule: string;
  readonly title: string;
  readonly verdict: string;
  /** Absent when there was no data, which is not zero. */
  readonly value?: number;
  readonly condition: string;
  readonly window: string;
  readonly onNoData: string;
  /** No sample of its signal has ever come. */
  readonly neverSeen?: true;
  /** It was not evaluated for an hour. */
  readonly isOld?: true;
  readonly lookedAt?: string;
  /** Why the newest evaluations failed. */
  readonly unseen?: string;
}

export interface ReceiverView {
  readonly receiver: string;
  readonly configured: boolean;
  readonly waiting: number;
  readonly sent: number;
  readonly sentAt?: string;
  readonly lost: number;
  readonly failing?: { readonly since?: string; readonly reason: string; readonly posts: number };
  /** Its last answer. */
  readonly answer?: { readonly status?: number; readonly body?: string };
}

export interface AlertsView {
  readonly alerts: readonly AlertView[];
  readonly rules: readonly RuleView[];
  readonly receivers: readonly ReceiverView[];
  readonly silences: readonly Silence[];
}

/** When a rule was last evaluated, where that is newer than what is recorded; epoch milliseconds. */
export interface LookTimes {
  lookedAt(rule: string): number | undefined;
}

/** Rules are evaluated every few minutes; an older verdict is not of now. */
const OLD_MS = 3_600_000;

/**
 * Every alert, rule, receiver and silence, read from the actors.
 *
 * @param receivers the listed ones, and whether an address is named for each
 * @param looks when rules were last evaluated, where nothing was recorded of it
 * @param now epoch milliseconds
 */
export function viewOf(
  actors: Pick<ActorSystem, 'get' | 'list'>,
  receivers: ReadonlyMap<string, boolean>,
  looks: LookTimes,
  now: number,
): AlertsView {
  const outboxes = new Map(
    actors.list(outboxActor).map(({ context }) => [context.receiver, context] as const),
  );
  return {
    alerts: actors
      .list(alertActor)
      .flatMap(({ key, value, context }) => alertView(key, value, context, waitingFor(key, outboxes))),
    rules: actors
      .list(ruleActor)
      .filter(({ value }) => value !== 'removed')
      .map(({ value, context }) => ruleView(value, looked(context, looks), now)),
    receivers: [...receivers].map(([name, configured]) => receiverView(name, configured, outboxes.get(name))),
    silences: activeSilences(actors, now),
  };
}

/** The receivers that have not accepted a notice of an alert yet. */
function waitingFor(alert: string, outboxes: ReadonlyMap<string, OutboxContext>): string[] {
  return [...outboxes].flatMap(([receiver, { queue }]) =>
    queue.some(({ notice }) => notice.alert === alert) ? [receiver] : [],
  );
}

function alertView(
  alert: string,
  value: unknown,
  context: AlertContext,
  waiting: readonly string[],
): AlertView[] {
  // A log of an older version does not record which receivers accepted it.
  const { content, since, count, informed, takenAt = {}, ack, silentUntil } = context;
  if (!content) return [];
  return [
    {
      alert,
      state: alertState(value),
      severity: content.severity,
      title: content.title,
      text: content.text,
      since: isoTime(since),
      count,
      informed,
      taken: Object.fromEntries(Object.entries(takenAt).map(([receiver, at]) => [receiver, isoTime(at)])),
      waiting,
      ...(ack && {
        acknowledged: {
          by: ack.by,
          until: isoTime(ack.until),
          ...(ack.note !== undefined && { note: ack.note }),
        },
      }),
      ...(silentUntil !== undefined && { silentUntil: isoTime(silentUntil) }),
    },
  ];
}

/** `{ firing: 'notified' }` is shown as `firing`. */
function alertState(value: unknown): AlertView['state'] {
  const inner = typeof value === 'object' && value !== null ? Object.values(value)[0] : undefined;
  if (inner === undefined) return 'quiet';
  return inner === 'acknowledged' || inner === 'silenced' ? inner : 'firing';
}

function ruleView(state: unknown, context: RuleContext, now: number): RuleView {
  const { name, title, value, condition, window, onNoData, evaluatedAt, failures, failure } = context;
  const isOld = isOldVerdict(context, now);
  const waits = onNoData === 'fire' && context.expect !== 'optional' && context.seenAt === undefined;
  return {
    rule: name,
    title,
    verdict: presentVerdict(state, context, isOld),
    ...(value !== undefined && { value }),
    condition: `${condition.kind} ${condition.than}`,
    window,
    onNoData,
    ...(waits && evaluatedAt !== undefined && { neverSeen: true as const }),
    ...(evaluatedAt !== undefined && { lookedAt: isoTime(evaluatedAt) }),
    ...(isOld && { isOld: true as const }),
    ...(failures > 0 && { unseen: failure ?? 'unknown' }),
  };
}

/** What is known of a rule, with the time of its newest evaluation. */
function looked(context: RuleContext, looks: LookTimes): RuleContext {
  const at = looks.lookedAt(context.name);
  return at === undefined ? context : { ...context, evaluatedAt: at };
}

const isOldVerdict = ({ evaluatedAt }: RuleContext, now: number): boolean =>
  evaluatedAt !== undefined && now - evaluatedAt > OLD_MS;

/** The verdict of a rule, `unknown` where it is an old one of a rule that cannot be evaluated; what fires goes on firing. */
function presentVerdict(state: unknown, { evaluatedAt, failures }: RuleContext, isOld: boolean): string {
  const verdict = verdictOf(state);
  if (verdict !== 'firing' && (failures > 0 || isOld)) return 'unknown';
  return evaluatedAt === undefined ? 'not evaluated yet' : verdict;
}

function receiverView(
  receiver: string,
  configured: boolean,
  outbox: OutboxContext | undefined,
): ReceiverView {
  const { queue = [], sent = 0, lost = 0, sentAt, failures = 0, failingSince, reason, answer } = outbox ?? {};
  return {
    receiver,
    configured,
    waiting: queue.length,
    sent,
    lost,
    ...(sentAt !== undefined && { sentAt: isoTime(sentAt) }),
    ...(failures > 0 && {
      failing: {
        reason: reason ?? 'it does not answer',
        posts: failures,
        ...(failingSince !== undefined && { since: isoTime(failingSince) }),
      },
    }),
    ...(answer && { answer }),
  };
}

/** Rules whose verdict a health page has one by one. */
const VERDICTS_SHOWN = 100;

/** For health pages: how many alerts fire, the verdicts of rules, and which receivers accept no notices. @param now epoch milliseconds */
export function alertsHealth(actors: Pick<ActorSystem, 'list'>, looks: LookTimes, now: number): JsonObject {
  const rules = actors
    .list(ruleActor)
    .filter(({ value }) => value !== 'removed')
    .map(({ value, context }) => ({ value, context: looked(context, looks) }));
  const firing = actors.list(alertActor).filter(({ value }) => typeof value === 'object').length;
  const failing = rules.filter(({ context }) => context.failures > 2).length;
  const reasons = actors.list(outboxActor).flatMap(({ context }) => {
    const { receiver, failures, queue, reason = 'no answer' } = context;
    return failures > 0 ? [`${receiver} takes no alerts (${reason}), ${queue.length} wait`] : [];
  });
  if (failing > 0) reasons.push(`${counted(failing, 'rule')} cannot be evaluated`);
  const verdicts = Object.groupBy(rules, ({ value, context }) =>
    presentVerdict(value, context, isOldVerdict(context, now)),
  );
  const counts = Object.entries(verdicts).map(([verdict, list = []]) => [verdict, list.length] as const);
  const each = counts.map(([verdict, count]) => `${count} ${verdict}`).join(', ');
  const found = firing === 0 ? 'no alert fires' : counted(firing, 'alert fires', 'alerts fire');
  return {
    text: [
      found,
      rules.length === 0 ? 'no rule is listed' : `${counted(rules.length, 'rule')}: ${each}`,
      ...reasons,
    ].join('; '),
    ...(reasons.length > 0 && { ok: false, reason: reasons.join('; ') }),
    firing,
    rules: Object.fromEntries(counts),
    verdicts: rules.slice(0, VERDICTS_SHOWN).map(({ value, context }) => {
      const { rule, verdict, value: measured, unseen } = ruleView(value, context, now);
      return {
        rule,
        verdict,
        ...(measured !== undefined && { value: measured }),
        ...(unseen !== undefined && { unseen }),
      };
    }),
  };
}
