import type { Recovered } from '../../kernel/actors/recover.ts';
import type { ActorState } from '../../kernel/actors/transition.ts';
import type { Clock } from '../../kernel/clock.ts';
import { JUMP_MS } from '../../kernel/clock-jumps.ts';
import { CLOCK } from '../../kernel/log/record.ts';
import type { Run } from '../lifecycle/machine.ts';
import { HOST, runsOf } from '../lifecycle/records.ts';
import { clockContextOf } from './records.ts';

/** What small corrections of a time service may add up to between two starts; milliseconds. */
const CORRECTIONS_MS = 10_000;
/** A stop that lasted longer by the wall clock alone is not believed: by its age, records younger would not be archived. */
const LONGEST_STOP_MS = 90 * 86_400_000;

/**
 * By how much the wall clock was set between the newest record and this start. As long as the machine has not been started
 * anew, the time since its start says so. Otherwise only the wall clock is there: it is believed unless it lies before the
 * newest record or more than 90 days after it.
 *
 * @returns milliseconds; negative when it was set back, 0 when it was not or not noticeably
 */
export function jumpBeforeStart({ states, newest }: Recovered, clock: Clock): number {
  if (newest.seq === 0) return 0;
  const now = clock.now();
  const passed = now - newest.at;
  const then = runsOf(states.get(HOST)).current;
  const start = startOfMachine(clock, states.get(CLOCK.actor));
  if (then?.bootedAt !== undefined && start && start.boot === then.boot) {
    const byMs = start.bootedAt - then.bootedAt;
    return Math.abs(byMs) > CORRECTIONS_MS || passed < -JUMP_MS ? byMs : 0;
  }
  return passed < -JUMP_MS || passed > LONGEST_STOP_MS ? passed : 0;
}

/**
 * When the machine was started, by the wall clock as if no recorded jump had been.
 *
 * @param state of the clock's actor
 * @returns undefined where no system says it
 */
export function startOfMachine(
  clock: Clock,
  state: Readonly<ActorState> | undefined,
): Required<Pick<Run, 'boot' | 'bootedAt'>> | undefined {
  const { boot, ms } = clock.sinceBoot?.() ?? {};
  if (boot === undefined || ms === undefined) return undefined;
  return { boot, bootedAt: clock.now() - ms - (clockContextOf(state)?.totalMs ?? 0) };
}
