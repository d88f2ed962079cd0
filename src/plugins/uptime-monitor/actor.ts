import { defineActor } from '../../core/kernel/actors/definition.ts';
import { monitor } from '../../machines/uptime-monitor/monitor.ts';
import { describeMonitorRecord } from './words.ts';

/** One push monitor; its key is the monitor's name. */
export const monitorActor = defineActor({
  type: 'uptime-monitor.monitor',
  machine: monitor,
  version: 1,
  describe: describeMonitorRecord,
});
