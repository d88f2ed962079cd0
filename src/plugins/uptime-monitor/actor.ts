import { defineActor } from '../../core/kernel/actors/definition.ts';
import type { LogRecord } from '../../core/kernel/log/record.ts';
import { monitor } from '../../machines/uptime-monitor/monitor.ts';
import { describeMonitorRecord } from './words.ts';

/** One push monitor; its key is the monitor's name. */
export const monitorActor = defineActor({
  type: 'uptime-monitor.monitor',
  machine: monitor,
  version: 1,
  durability: (record) => (isRoutine(record) ? 'batched' : 'sync'),
  describe: describeMonitorRecord,
});

/** A beat of a monitor that is up changes nothing else: one that a crash loses is made up for by the next. */
function isRoutine({ event, from, to, effects }: LogRecord): boolean {
  return (
    event.type === 'BEAT' &&
    from === 'up' &&
    to.value === 'up' &&
    effects.every(({ type }) => type.startsWith('timer.'))
  );
}
