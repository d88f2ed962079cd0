import type { ActorSnapshot } from '../../core/kernel/actors/transition.ts';
import { isoTime } from '../../core/kernel/clock.ts';
import { CHANGES_KEPT, type Change, diagnosis } from '../../machines/uptime-monitor/diagnosis.ts';
import type { monitor } from '../../machines/uptime-monitor/monitor.ts';

export type MonitorState = Change['to'];
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

export const DAY_MS = 86_400_000;

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

export function stateOf({ value }: Pick<MonitorSnapshot, 'value'>): MonitorState {
  if (typeof value === 'object') return 'down';
  return value === 'released' ? 'paused' : value;
}

/** The states between two times, each with its duration. */
function* spells(
  changes: readonly Change[],
  from: number,
  to: number,
): Generator<{ ms: number; is: MonitorState }> {
  for (const [index, change] of changes.entries()) {
    const begin = Math.max(from, change.at);
    const end = Math.min(to, changes[index + 1]?.at ?? to);
    // A monitor that is late without having been up before has never been up.
    const isUnheard = change.to === 'late' && changes[index - 1]?.to !== 'up';
    if (end > begin) yield { ms: end - begin, is: isUnheard ? 'waiting' : change.to };
  }
}

/**
 * The share of a period until now in which a monitor was up. Late counts as up, because no alert is raised yet; paused and
 * waiting do not count.
 *
 * @param periodMs milliseconds
 * @returns 0 to 1; undefined when nothing is known of it, or when older changes of that period are no longer kept
 */
export function uptimeOver(changes: readonly Change[], now: number, periodMs: number): number | undefined {
  const from = now - periodMs;
  const [oldest] = changes;
  if (changes.length >= CHANGES_KEPT && oldest && oldest.at > from) return undefined;
  let up = 0;
  let counted = 0;
  for (const { ms, is } of spells(changes, from, now)) {
    if (is === 'paused' || is === 'waiting') continue;
    counted += ms;
    if (is !== 'down') up += ms;
  }
  return counted === 0 ? undefined : Math.round((up / counted) * 1e6) / 1e6;
}

const WORST: readonly MonitorState[] = ['down', 'late', 'up', 'paused', 'waiting'];

/** The worst state in each of `count` equal parts of a time; undefined without information. */
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
