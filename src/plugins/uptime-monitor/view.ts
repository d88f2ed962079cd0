import type { ActorSnapshot } from '../../core/kernel/actors/transition.ts';
import { isoTime } from '../../core/kernel/clock.ts';
import { diagnosis } from '../../machines/uptime-monitor/diagnosis.ts';
import type { monitor } from '../../machines/uptime-monitor/monitor.ts';
import { DAY_MS, type MonitorState, stateOf, uptimeOver } from './spells.ts';

export type MonitorSnapshot = ActorSnapshot<typeof monitor>;

/** A monitor as people and programs see it; times are ISO 8601. */
export interface MonitorView {
  readonly name: string;
  readonly title: string;
  readonly slug: string;
  readonly state: MonitorState;
  readonly since?: string;
  readonly lastBeat?: { readonly at: string; readonly msg: string; readonly ping?: number };
  /** When it goes DOWN unless a beat comes. */
  readonly downAt?: string;
  /** Why it is down, or why its sender's last run sent no beat. */
  readonly reason?: string;
  readonly acknowledged?: { readonly by: string; readonly until: string; readonly note?: string };
  readonly interval: number;
  readonly beats: number;
  /** The share of the last 24 hours in which it was up, 0 to 1; time without information does not count. */
  readonly uptime24h?: number;
  readonly changes: readonly { readonly at: string; readonly to: MonitorState; readonly why: string }[];
}

/** @param details false leaves out messages and reasons: names of hosts and errors are not for everybody */
export function viewOf(state: MonitorSnapshot, now: number, details = true): MonitorView {
  const monitor = state.context;
  const { name, title, slug, lastAt, lastMsg = '', lastPing, ack, trouble, changes } = monitor;
  const current = stateOf(state);
  const waits = current === 'up' || current === 'late' || current === 'waiting';
  const reason = current === 'down' ? diagnosis(monitor) : trouble && `${trouble.outcome}: ${trouble.text}`;
  const uptime = uptimeOver(changes, now, DAY_MS);
  return {
    name,
    title,
    slug,
    state: current,
    ...(monitor.since > 0 && { since: isoTime(monitor.since) }),
    ...(lastAt !== undefined && {
      lastBeat: {
        at: isoTime(lastAt),
        msg: details ? lastMsg : '',
        ...(lastPing !== undefined && { ping: lastPing }),
      },
    }),
    ...(waits &&
      monitor.armedAt > 0 && { downAt: isoTime(monitor.armedAt + monitor.waitMs + monitor.lateMs) }),
    ...(reason !== undefined && details && { reason }),
    ...(ack && {
      acknowledged: {
        by: details ? ack.by : '',
        until: isoTime(ack.until),
        ...(ack.note !== undefined && details && { note: ack.note }),
      },
    }),
    interval: monitor.intervalMs / 1_000,
    beats: monitor.beats,
    ...(uptime !== undefined && { uptime24h: uptime }),
    changes: changes.map(({ at, to, why }) => ({ at: isoTime(at), to, why: details ? why : '' })),
  };
}
