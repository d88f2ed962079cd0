import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the embedded uptime monitor. */
export const UptimeMonitorError = defineErrors({
  HF_UPTIME_MONITOR_UNKNOWN: {
    status: 404,
    what: 'There is no push monitor {monitor}.',
    remedy:
      'Name one that is listed: {known}. More are added to `monitors` of uptimeMonitor() in plugins.config.ts.',
  },
  HF_UPTIME_MONITOR_STATE: {
    status: 409,
    what: '{monitor} is {state}, so this cannot be done to it.',
    remedy:
      'Acknowledge a monitor that is down, or resume one that is paused; `holdfast uptime list` shows their states.',
  },
});
