import type { Moment } from '../../kernel/actors/recover.ts';
import { parseActorRef } from '../../kernel/ids.ts';
import { isObject, type Json, type JsonObject } from '../../kernel/json.ts';
import { delayOf } from '../../kernel/log/record.ts';
import { duration } from '../amounts.ts';
import type { StoppedReports } from '../plugin/definition.ts';
import { freeOf, textOf } from './answer-text.ts';

/** An effect that waits for longer than this is worth a look, milliseconds. */
const LONG_WAIT_MS = 60_000;
/** The actors that keep the alerts, one a condition. In a state with an inner one, such as `{ firing: … }`, it lasts. */
export const ALERT = 'alerts.alert';

/** An alert that fires. */
export interface FiringAlert {
  readonly alert: string;
  readonly actor: string;
  /** Epoch milliseconds; absent where nobody knows. */
  readonly since?: number;
  /** The record that raised it. */
  readonly record: number;
  readonly severity: string;
  readonly text: string;
  /** Who was notified, who accepted it, who takes care of it, and when the next step comes. */
  readonly doing: string;
}

/** The alerts that fire at a moment. */
export function firingAt({ actors }: Moment, most: number): FiringAlert[] {
  const firing = actors.filter(({ ref, value }) => parseActorRef(ref).type === ALERT && isObject(value));
  return firing.slice(0, most).map(({ ref, context, seq, timers }) => {
    const { since, record, content, ...escalation } = isObject(context) ? context : {};
    const { severity, text } = isObject(content) ? content : {};
    return {
      alert: textOf(parseActorRef(ref).key),
      actor: textOf(ref),
      ...(typeof since === 'number' && { since }),
      record: typeof record === 'number' ? record : seq,
      severity: textOf(String(severity ?? 'unknown')),
      text: textOf(String(text ?? '')),
      doing: textOf(escalationText(escalation, Object.keys(timers).length > 0)),
    };
  });
}

function escalationText({ informed, takenAt, ack, silentUntil }: JsonObject, goesOn: boolean): string {
  const names = Array.isArray(informed) ? informed.map(String) : [];
  const accepted = isObject(takenAt) ? takenAt : {};
  const notified = names.map((name) => `${name}${name in accepted ? '' : ' (not accepted yet)'}`);
  if (isObject(ack)) return `${ack.by} takes care of it${ack.note === undefined ? '' : `: ${ack.note}`}`;
  if (typeof silentUntil === 'number') return 'silenced: nobody is notified';
  if (names.length === 0)
    return goesOn ? 'nobody was notified yet' : 'nobody is notified: it has no receiver';
  return `notified: ${notified.join(', ')}; nobody takes care of it yet`;
}

/** An effect without an outcome. */
export interface WaitingEffect {
  readonly actor: string;
  readonly effect: string;
  /** Epoch milliseconds. */
  readonly since: number;
  /** The record that requested it. */
  readonly record: number;
}

/** The effects that have waited for long at a moment. @param now epoch milliseconds */
export function waitingAt({ actors }: Moment, now: number, most: number): WaitingEffect[] {
  return actors
    .flatMap(({ ref, effects }) =>
      Object.entries(effects).map(([id, { type, at }]) => ({
        actor: textOf(ref),
        effect: textOf(type),
        since: at,
        record: Number.parseInt(id, 10),
      })),
    )
    .filter(({ since }) => now - since > LONG_WAIT_MS)
    .slice(0, most);
}

/** So many things that a plugin does are named. */
const MOST_DOING = 2;

/**
 * What the actors of a plugin are at: effects without an outcome, and timers, the next to expire first.
 *
 * @param plugin name, which the addresses of its actors begin with
 * @param now epoch milliseconds
 * @returns undefined where nothing of it is under way
 */
export function doingAt({ actors }: Moment, plugin: string, now: number): string | undefined {
  const own = actors.filter(({ ref }) => ref.startsWith(`${plugin}.`));
  const effects = own.flatMap(({ ref, effects: open }) =>
    Object.values(open).map(({ type, at }) => `${ref} waits for ${type} for ${duration(now - at)}`),
  );
  const timers = own
    .flatMap(({ ref, timers: armed }) =>
      Object.entries(armed).map(([timer, { at }]) => ({ ref, name: delayOf(timer) ?? timer, at })),
    )
    .sort((a, b) => a.at - b.at)
    .map(({ ref, name, at }) => `${ref} goes on by its timer ${name} in ${duration(Math.max(0, at - now))}`);
  const all = [...effects, ...timers];
  if (all.length === 0) return undefined;
  const more = all.length > MOST_DOING ? `; and ${all.length - MOST_DOING} more` : '';
  return textOf(all.slice(0, MOST_DOING).join('; ') + more);
}

/** What plugins report of the states at a moment, as they do of a stopped instance. @param at epoch milliseconds */
export function factsAt(
  { actors }: Moment,
  at: number,
  reports: StoppedReports,
): { readonly fact: string; readonly report: Json }[] {
  const states = new Map(actors.map((state) => [state.ref, state]));
  return Object.entries(reports).flatMap(([name, stopped]) => {
    const report = stopped(states, at);
    return report === undefined ? [] : [{ fact: textOf(name), report: freeOf(report) }];
  });
}
