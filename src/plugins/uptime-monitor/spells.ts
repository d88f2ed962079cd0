/** How long a monitor was in each of its states, from the changes that its actor remembers. */
import type { ActorSnapshot } from '../../core/kernel/actors/transition.ts';
import { CHANGES_KEPT, type Change } from '../../machines/uptime-monitor/diagnosis.ts';
import type { monitor } from '../../machines/uptime-monitor/monitor.ts';

export type MonitorState = Change['to'];

export const DAY_MS = 86_400_000;

/** @param value the state of a monitor's machine */
export function stateOf({ value }: Pick<ActorSnapshot<typeof monitor>, 'value'>): MonitorState {
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
