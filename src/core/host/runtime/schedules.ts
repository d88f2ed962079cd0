import { Cron } from 'croner';
import type { Bus } from '../../../bus/bus.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { Owned, ScheduleRegistration } from '../plugin/registrations.ts';

/**
 * Publishes each schedule's topic at its times, on the runtime's own clock. Times missed while the process was down
 * are not made up for: what must not be missed is a durable timer.
 *
 * @returns ends them all
 */
export function startSchedules(
  schedules: readonly Owned<ScheduleRegistration>[],
  bus: Bus,
  clock: Clock,
): () => void {
  const cancels = schedules.map(({ cron, topic }) => {
    const pattern = new Cron(cron, { paused: true, timezone: 'UTC' });
    let cancel = () => {};
    const arm = () => {
      const next = pattern.nextRun(new Date(clock.now()));
      if (!next) return;
      cancel = clock.after(next.getTime() - clock.now(), () => {
        bus.publish(topic, {});
        arm();
      });
    };
    arm();
    return () => cancel();
  });
  return () => {
    for (const cancel of cancels) cancel();
  };
}
