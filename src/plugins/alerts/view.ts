import type { ActorSystem } from '../../core/kernel/actors/system.ts';
import type { JsonObject } from '../../core/kernel/json.ts';
import type { AlertContext } from '../../machines/alerts/alert.ts';
import type { OutboxContext } from '../../machines/alerts/outbox.ts';
import type { RuleContext } from '../../machines/alerts/rule.ts';
import type { Silence } from '../../machines/alerts/silences.ts';
import { verdictOf } from './describe.ts';
import { ALERT_ACTOR, OUTBOX_ACTOR, RULE_ACTOR, silencesNow } from './raised.ts';

/** A condition, as commands show it. Times are ISO texts. */
export interface AlertView {
  readonly alert: string;
  readonly state: 'firing' | 'acknowledged' | 'silenced' | 'quiet';
  readonly severity: string;
  readonly title: string;
  readonly text: string;
  readonly since: string;
  /** Times that it was raised since. */
  readonly count: number;
  /** Who knows of it. */
  readonly informed: readonly string[];
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
  /** Silence would fire, once there has been a first sample. */
  readonly neverSeen?: true;
  readonly lookedAt?: string;
  /** Why the newest looks saw nothing. */
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
  /** What it said last. */
  readonly answer?: { readonly status?: number; readonly body?: string };
}

export interface AlertsView {
  readonly alerts: readonly AlertView[];
  readonly rules: readonly RuleView[];
  readonly receivers: readonly ReceiverView[];
  readonly silences: readonly Silence[];
}

const iso = (at: number): string => new Date(at).toISOString();

/**
 * Everything that alerts know, read from their actors.
 *
 * @param receivers the listed ones, and whether an address is named for each
 * @param now epoch milliseconds
 */
export function viewOf(
  actors: Pick<ActorSystem, 'list' | 'snapshot'>,
  receivers: ReadonlyMap<string, boolean>,
  now: number,
): AlertsView {
  const outboxes = new Map(
    actors.list(OUTBOX_ACTOR).map(({ context }) => {
      const outbox = context as unknown as OutboxContext;
      return [outbox.receiver, outbox] as const;
    }),
  );
  return {
    alerts: actors
      .list(ALERT_ACTOR)
      .flatMap(({ ref, value, context }) => alertView(ref, value, context as unknown as AlertContext)),
    rules: actors
      .list(RULE_ACTOR)
      .filter(({ value }) => value !== 'removed')
      .map(({ value, context }) => ruleView(value, context as unknown as RuleContext)),
    receivers: [...receivers].map(([name, configured]) => receiverView(name, configured, outboxes.get(name))),
    silences: silencesNow(actors, now),
  };
}

function alertView(ref: string, value: unknown, context: AlertContext): AlertView[] {
  const { told, since, count, informed, ack, silentUntil } = context;
  if (!told) return [];
  const inner = typeof value === 'object' && value !== null ? Object.values(value)[0] : 'quiet';
  return [
    {
      alert: ref.slice(ALERT_ACTOR.length + 1),
      state: inner === 'told' ? 'firing' : (inner as AlertView['state']),
      severity: told.severity,
      title: told.title,
      text: told.text,
      since: iso(since),
      count,
      informed,
      ...(ack && {
        acknowledged: {
          by: ack.by,
          until: iso(ack.until),
          ...(ack.note !== undefined && { note: ack.note }),
        },
      }),
      ...(silentUntil !== undefined && { silentUntil: iso(silentUntil) }),
    },
  ];
}

function ruleView(state: unknown, context: RuleContext): RuleView {
  const { name, title, value, condition, window, onNoData, lookedAt, misses, missed } = context;
  const waits = onNoData === 'fire' && context.onNeverSeen === 'ok' && !context.seen;
  return {
    rule: name,
    title,
    verdict: lookedAt === undefined ? 'not looked yet' : verdictOf(state),
    ...(value !== undefined && { value }),
    condition: `${condition.kind} ${condition.than}`,
    window,
    onNoData,
    ...(waits && lookedAt !== undefined && { neverSeen: true as const }),
    ...(lookedAt !== undefined && { lookedAt: iso(lookedAt) }),
    ...(misses > 0 && { unseen: missed ?? 'unknown' }),
  };
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
    ...(sentAt !== undefined && { sentAt: iso(sentAt) }),
    ...(failures > 0 && {
      failing: {
        reason: reason ?? 'it does not answer',
        posts: failures,
        ...(failingSince !== undefined && { since: iso(failingSince) }),
      },
    }),
    ...(answer && { answer }),
  };
}

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
