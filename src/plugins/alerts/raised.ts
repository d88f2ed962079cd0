import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { defineTopic, type Topic } from '../../bus/topic.ts';
import { type AlertRaised, alertRaised } from '../../core/contracts/alerts.ts';
import { defineRoute } from '../../core/kernel/actors/route.ts';
import type { ActorSystem } from '../../core/kernel/actors/system.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { actorRef } from '../../core/kernel/ids.ts';
import type { AlertContext, Notice, Queued, Raised, Told } from '../../machines/alerts/alert.ts';
import { RECEIVER_AWAY } from '../../machines/alerts/outbox.ts';
import type { Silence } from '../../machines/alerts/silences.ts';
import { type AlertRoute, fits, ladderFor } from './options.ts';

export const ALERT_ACTOR = 'alerts.alert';
export const RULE_ACTOR = 'alerts.rule';
export const OUTBOX_ACTOR = 'alerts.outbox';
export const SILENCES_ACTOR = 'alerts.silences';
export const SILENCES = actorRef(SILENCES_ACTOR, 'all');

/** Labels that tell one condition from another; all others tell how it is just now. */
const IDENTITY = [
  'rule',
  'monitor',
  'route',
  'intf',
  'store',
  'wan',
  'set',
  'plugin',
  'receiver',
  'job',
  'actor',
  'place',
  'path',
];

/** The key of the actor that an alert belongs to. */
function alertKey({ name, labels }: Pick<AlertRaised, 'name' | 'labels'>): string {
  const parts = IDENTITY.flatMap((label) => (labels[label] ? [`${label}=${labels[label]}`] : []));
  if (parts.length === 0) return name;
  const key = `${name}{${parts.join(',')}}`;
  return key.length <= 160 ? key : `${name}{${createHash('sha256').update(key).digest('hex').slice(0, 16)}}`;
}

/** Alerts that have an actor of their own at most; beyond, those of one name share one. */
const ALERTS_KEPT = 5_000;

export interface RaisedParts {
  readonly actors: () => Pick<ActorSystem, 'snapshot' | 'list' | 'send'>;
  readonly clock: () => Clock;
  readonly routes: readonly AlertRoute[];
  /** Whether a receiver has an address: who has none is not waited for. */
  readonly isReady: (receiver: string) => boolean;
}

/** Every alert that is raised anywhere becomes an event of its actor, with the rungs that the configuration gives it. */
export function raisedRoute({ actors, clock, routes, isReady }: RaisedParts) {
  return defineRoute(alertRaised, ALERT_ACTOR, ({ payload, correlation, cause }) => {
    const { name, severity, text, labels, measured } = payload;
    // A trial goes to its receiver alone.
    if (labels.state === 'test') return [];
    const key = alertKey(payload);
    const known = actors().snapshot(actorRef(ALERT_ACTOR, key)) !== undefined;
    const crowded = !known && actors().list(ALERT_ACTOR).length >= ALERTS_KEPT;
    const at = clock().now();
    const { state } = labels;
    const told: Told = {
      name,
      severity,
      title: measured?.title ?? titleOf(name, labels),
      text,
      labels,
      ...facts(measured),
    };
    const silentUntil = silenceOf(actors(), name, at);
    const event: Raised = {
      type: 'RAISED',
      at,
      cause: `${correlation}:${cause ?? at}`,
      kind: state === 'firing' || state === 'resolved' ? state : 'event',
      ...(labels.reminder !== undefined && { again: true }),
      told,
      ...readyLadder(routes, payload, isReady),
      ...(silentUntil !== undefined && { silentUntil }),
    };
    return [{ key: crowded ? name : key, event: { ...event } }];
  });
}

/** The rungs of an alert with the receivers that have an address; of one that is away the others are told. */
function readyLadder(
  routes: readonly AlertRoute[],
  { name, severity, labels }: Pick<AlertRaised, 'name' | 'severity' | 'labels'>,
  isReady: (receiver: string) => boolean,
) {
  const { steps, remindMs } = ladderFor(routes, name, severity);
  const hears = (receiver: string) =>
    isReady(receiver) && !(name === RECEIVER_AWAY && labels.receiver === receiver);
  return { steps: steps.map(({ to, afterMs }) => ({ to: to.filter(hears), afterMs })), remindMs };
}

/** At a start: what still fires gets the rungs of the configuration as it is now, and whoever is new is told. */
export function regradeAlerts({ actors, clock, routes, isReady }: RaisedParts): void {
  const at = clock().now();
  for (const { ref, value, context } of actors().list(ALERT_ACTOR)) {
    const { told, steps, remindMs } = context as unknown as AlertContext;
    if (typeof value !== 'object' || !told) continue;
    const now = readyLadder(routes, told, isReady);
    if (isDeepStrictEqual(now, { steps, remindMs })) continue;
    actors().send(ref, { type: 'LADDER', at, ...now } as never);
  }
}

function facts(measured: AlertRaised['measured']): Partial<Told> {
  if (!measured) return {};
  const { title: _, value, threshold, window, runbook } = measured;
  return {
    threshold,
    window,
    ...(value !== undefined && { value }),
    ...(runbook !== undefined && { runbook }),
  };
}

/** e.g. `uptime monitor down: clickstack-watchdog` */
function titleOf(name: string, labels: Readonly<Record<string, string>>): string {
  const which = IDENTITY.flatMap((label) => labels[label] ?? []).join(' ');
  const words = name.replace(/[._]/g, ' ');
  return which === '' ? words : `${words}: ${which}`;
}

/** Until when alerts of a name are silent, if they are. */
export function silenceOf(
  actors: Pick<ActorSystem, 'snapshot'>,
  name: string,
  at: number,
): number | undefined {
  const untils = silencesNow(actors, at).flatMap(({ pattern, until }) =>
    fits(pattern, name) ? [until] : [],
  );
  return untils.length > 0 ? Math.max(...untils) : undefined;
}

/** Silences that have not ended. */
export function silencesNow(actors: Pick<ActorSystem, 'snapshot'>, at: number): readonly Silence[] {
  const context = actors.snapshot(SILENCES)?.context as { silences?: readonly Silence[] } | undefined;
  return (context?.silences ?? []).filter(({ until }) => until > at);
}

/** A notice for one receiver. */
export interface Notified {
  readonly receiver: string;
  readonly item: Queued;
}

export const notified: Topic<Notified> = defineTopic(
  'alerts.notified',
  z.object({
    receiver: z.string(),
    item: z.object({
      id: z.string(),
      at: z.number(),
      notice: z.custom<Notice>((notice) => typeof notice === 'object'),
    }),
  }) as unknown as z.ZodType<Notified>,
  'A receiver is to be told of an alert.',
);

export const notifiedRoute = defineRoute(notified, OUTBOX_ACTOR, ({ payload: { receiver, item } }) => [
  { key: receiver, event: { type: 'QUEUE', item } },
]);
