/**
 * Routes a raised alert to the actor of its condition: finds its key, the configured escalation, and the silences that
 * apply.
 */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Envelope } from '../../bus/bus.ts';
import type { AlertRaised } from '../../core/contracts/alerts.ts';
import type { RouteTarget } from '../../core/kernel/actors/definition.ts';
import type { ActorSystem } from '../../core/kernel/actors/system.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { alert } from '../../machines/alerts/alert.ts';
import type { AlertContent } from '../../machines/alerts/notice.ts';
import { RECEIVER_AWAY } from '../../machines/alerts/outbox-queue.ts';
import type { Silence } from '../../machines/alerts/silences.ts';
import { alertActor, SILENCES_KEY, silencesActor } from './actors.ts';
import { type AlertRoute, escalationFor, fits } from './options.ts';

/**
 * Labels that distinguish conditions; the others describe the present state of one. What is about one of several hosts names it
 * (`host`), what is about a subject of all of them does not.
 */
const IDENTITY = [
  'host',
  'singleton',
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
  'surface',
];

/** The most alerts that have an actor of their own; beyond, those of one name share one. */
const ALERTS_KEPT = 5_000;
const LONGEST_KEY = 160;

export interface AlertRouting {
  readonly actors: Pick<ActorSystem, 'get' | 'list' | 'send'>;
  readonly clock: Clock;
  readonly routes: readonly AlertRoute[];
  /** Whether a receiver has an address: one without is left out. */
  readonly isReady: (receiver: string) => boolean;
}

/** The event that a raised alert is for the actor of its condition. */
export function raisedTargets(
  { payload, correlation, cause }: Envelope<AlertRaised>,
  { actors, clock, routes, isReady }: AlertRouting,
): RouteTarget<typeof alert>[] {
  const { name, severity, text, labels, measured } = payload;
  // A test of a receiver goes to that receiver alone.
  if (labels.state === 'test') return [];
  const key = alertKey(payload);
  const isFull = !actors.get(alertActor, key) && actors.list(alertActor).length >= ALERTS_KEPT;
  const at = clock.now();
  const { state } = labels;
  const title = measured?.title ?? titleOf(name, labels);
  const content: AlertContent = { name, severity, title, text, labels, ...measurement(measured) };
  const silentUntil = silencedUntil(actors, name, at);
  const event = {
    type: 'RAISED',
    at,
    cause: `${correlation}:${cause ?? at}`,
    ...(cause !== undefined && { record: cause }),
    kind: state === 'firing' || state === 'resolved' ? state : 'event',
    ...(labels.reminder !== undefined && { again: true }),
    content,
    ...readyEscalation(routes, payload, isReady),
    ...(silentUntil !== undefined && { silentUntil }),
  } as const;
  return [{ key: isFull ? name : key, event }];
}

/** At a start: every alert that fires gets the escalation of the present configuration, and new receivers are notified. */
export function rerouteAlerts({ actors, clock, routes, isReady }: AlertRouting): void {
  const at = clock.now();
  for (const { key, value, context } of actors.list(alertActor)) {
    const { content, steps, remindMs } = context;
    if (typeof value !== 'object' || !content) continue;
    const escalation = readyEscalation(routes, content, isReady);
    if (isDeepStrictEqual(escalation, { steps, remindMs })) continue;
    actors.send(alertActor, key, { type: 'ESCALATION', at, ...escalation });
  }
}

/** Until when alerts of a name are silenced, epoch milliseconds; undefined when they are not. */
export function silencedUntil(
  actors: Pick<ActorSystem, 'get'>,
  name: string,
  at: number,
): number | undefined {
  const ends = activeSilences(actors, at).flatMap(({ pattern, until }) =>
    fits(pattern, name) ? [until] : [],
  );
  return ends.length > 0 ? Math.max(...ends) : undefined;
}

/** Silences that have not ended. @param at epoch milliseconds */
export function activeSilences(actors: Pick<ActorSystem, 'get'>, at: number): readonly Silence[] {
  const { silences = [] } = actors.get(silencesActor, SILENCES_KEY)?.context ?? {};
  return silences.filter(({ until }) => until > at);
}

/** The key of the actor that an alert belongs to. */
function alertKey({ name, labels }: Pick<AlertRaised, 'name' | 'labels'>): string {
  const identity = IDENTITY.flatMap((label) => (labels[label] ? [`${label}=${labels[label]}`] : []));
  if (identity.length === 0) return name;
  const key = `${name}{${identity.join(',')}}`;
  if (key.length <= LONGEST_KEY) return key;
  return `${name}{${createHash('sha256').update(key).digest('hex').slice(0, 16)}}`;
}

/** The escalation of an alert with only the receivers that have an address, without the one that the alert is about. */
function readyEscalation(
  routes: readonly AlertRoute[],
  { name, severity, labels }: Pick<AlertRaised, 'name' | 'severity' | 'labels'>,
  isReady: (receiver: string) => boolean,
) {
  const { steps, remindMs } = escalationFor(routes, name, severity);
  const canReceive = (receiver: string) =>
    isReady(receiver) && !(name === RECEIVER_AWAY && labels.receiver === receiver);
  return { steps: steps.map(({ to, afterMs }) => ({ to: to.filter(canReceive), afterMs })), remindMs };
}

function measurement(measured: AlertRaised['measured']): Partial<AlertContent> {
  if (!measured) return {};
  const { value, threshold, window, places, firstStep, runbook } = measured;
  return {
    threshold,
    window,
    ...(value !== undefined && { value }),
    ...(places !== undefined && { places }),
    ...(firstStep !== undefined && { firstStep }),
    ...(runbook !== undefined && { runbook }),
  };
}

/** e.g. `uptime monitor down: clickstack-watchdog` */
function titleOf(name: string, labels: Readonly<Record<string, string>>): string {
  const identity = IDENTITY.flatMap((label) => labels[label] ?? []).join(' ');
  const words = name.replace(/[._]/g, ' ');
  return identity === '' ? words : `${words}: ${identity}`;
}
