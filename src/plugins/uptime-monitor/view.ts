import type { ActorState } from '../../core/kernel/actors/state.ts';
import { delayOf, type LogRecord } from '../../core/kernel/log/record.ts';
import { type Change, diagnosis, type MonitorContext } from '../../machines/uptime-monitor/diagnosis.ts';

export type MonitorState = Change['to'];

/** A monitor as people and programs see it; times are ISO 8601. */
export interface MonitorView {
  readonly name: string;
  readonly title: string;
  readonly slug: string;
  readonly state: MonitorState;
  readonly since?: string;
  readonly lastBeat?: { readonly at: string; readonly msg: string; readonly ping?: number };
  /** When it is DOWN unless a beat comes. */
  readonly downAt?: string;
  /** Why it is down, or what its sender's last run came to. */
  readonly reason?: string;
  readonly acknowledged?: { readonly by: string; readonly until: string; readonly note?: string };
  readonly interval: number;
  readonly beats: number;
  /** The part of the last 24 hours that it was up, 0 to 1, of the time that is known. */
  readonly uptime24h?: number;
  readonly changes: readonly { readonly at: string; readonly to: MonitorState; readonly why: string }[];
}

export const DAY_MS = 86_400_000;

/** @param details false leaves out what was said: names of hosts and errors are not for everybody */
export function viewOf(state: Readonly<ActorState>, now: number, details = true): MonitorView {
  const monitor = state.context as unknown as MonitorContext;
  const { name, title, slug, lastAt, lastMsg = '', lastPing, ack, trouble, changes } = monitor;
  const is = stateOf(state);
  const waits = is === 'up' || is === 'late' || is === 'waiting';
  const reason = is === 'down' ? diagnosis(monitor) : trouble && `${trouble.outcome}: ${trouble.text}`;
  const uptime = uptimeOf(changes, now - DAY_MS, now);
  return {
    name,
    title,
    slug,
    state: is,
    ...(monitor.since > 0 && { since: iso(monitor.since) }),
    ...(lastAt !== undefined && {
      lastBeat: {
        at: iso(lastAt),
        msg: details ? lastMsg : '',
        ...(lastPing !== undefined && { ping: lastPing }),
      },
    }),
    ...(waits && monitor.armedAt > 0 && { downAt: iso(monitor.armedAt + monitor.waitMs + monitor.lateMs) }),
    ...(reason !== undefined && details && { reason }),
    ...(ack && {
      acknowledged: {
        by: details ? ack.by : '',
        until: iso(ack.until),
        ...(ack.note !== undefined && details && { note: ack.note }),
      },
    }),
    interval: monitor.intervalMs / 1_000,
    beats: monitor.beats,
    ...(uptime !== undefined && { uptime24h: uptime }),
    changes: changes.map(({ at, to, why }) => ({ at: iso(at), to, why: details ? why : '' })),
  };
}

export function stateOf({ value }: Readonly<ActorState>): MonitorState {
  if (typeof value === 'object') return 'down';
  return value === 'released' ? 'paused' : (value as MonitorState);
}

/** How it was between two times: what it changed to last before, and each change. */
function* spells(
  changes: readonly Change[],
  from: number,
  to: number,
): Generator<{ ms: number; is: MonitorState }> {
  for (const [index, change] of changes.entries()) {
    const begin = Math.max(from, change.at);
    const end = Math.min(to, changes[index + 1]?.at ?? to);
    // Late is a question of one that was up: one that never beat has not been up either.
    const isUnheard = change.to === 'late' && changes[index - 1]?.to !== 'up';
    if (end > begin) yield { ms: end - begin, is: isUnheard ? 'waiting' : change.to };
  }
}

/** Late is up still: a person is not told yet. Paused and waiting count for nothing. */
function uptimeOf(changes: readonly Change[], from: number, to: number): number | undefined {
  let up = 0;
  let known = 0;
  for (const { ms, is } of spells(changes, from, to)) {
    if (is === 'paused' || is === 'waiting') continue;
    known += ms;
    if (is !== 'down') up += ms;
  }
  return known === 0 ? undefined : Math.round((up / known) * 1e6) / 1e6;
}

const WORST: readonly MonitorState[] = ['down', 'late', 'up', 'paused', 'waiting'];

/** The worst of each of `count` equal parts of a time; undefined where nothing is known. */
export function bars(
  changes: readonly Change[],
  from: number,
  to: number,
  count: number,
): (MonitorState | undefined)[] {
  const step = (to - from) / count;
  return Array.from({ length: count }, (_, index) => {
    const seen = [...spells(changes, from + index * step, from + (index + 1) * step)].map(({ is }) => is);
    return WORST.find((state) => seen.includes(state));
  });
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

/** A record of a monitor in an operator's words, for `holdfast log`. */
export function describeMonitorRecord({ event, from, to, effects }: LogRecord): string | undefined {
  const text = (field: string) => String(event[field] ?? '?');
  const again = effects.some(({ type }) => type === 'alert.raise');
  switch (event.type) {
    case 'init':
    case 'effect.done':
      return '';
    case 'BEAT':
      if (from === 'paused') return 'beats, and is paused';
      if (event.up !== true) return `says that it is down: ${text('msg')}`;
      return from === 'up' ? '' : again ? 'beats again' : 'beats';
    case 'WATCH':
      return to.value === from ? '' : 'is watched';
    case 'TROUBLE': {
      const trouble = event.trouble as { outcome?: unknown; text?: unknown } | undefined;
      return `sent no beat, ${String(trouble?.outcome)}: ${String(trouble?.text)}`;
    }
    case 'ACK':
      return `is acknowledged by ${text('by')}`;
    case 'PAUSE':
      return `is paused by ${text('by')}`;
    case 'UNPAUSE':
      return `is watched again, says ${text('by')}`;
    case 'RELEASE':
      return 'is no longer listed';
  }
  switch (delayOf(event.type)) {
    case 'overdue':
      return 'sent no beat when one was due';
    case 'lost':
      return 'is DOWN';
    case 'reminder':
    case 'acknowledged':
      return 'is still DOWN';
    default:
      return undefined;
  }
}
