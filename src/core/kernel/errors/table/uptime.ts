import { type ErrorEntry, entry } from '../entry.ts';

/** Of the uptime monitor, heartbeats and the watchdog. */
export const uptimeErrors = {
  HF_UPTIME_TOKEN: entry(
    500,
    'There is no usable push token for the monitor {monitor}: {reason}.',
    'Put the token alone into {place}, mode 0600; the monitor shows it in its push URL, after /api/push/.',
  ),
  HF_UPTIME_NONE: entry(
    503,
    'There is no uptime monitor to push to: HOLDFAST_UPTIME_URL is not set, and no instance with one runs on {dir}.',
    'Set HOLDFAST_UPTIME_URL to the base of a monitor, e.g. http://uptime:3001, or start Holdfast with the plugin uptime-monitor.',
  ),
  HF_UPTIME_MONITOR_UNKNOWN: entry(
    404,
    'There is no push monitor {monitor}.',
    'Name one that is listed: {known}. More are added to `monitors` of uptimeMonitor() in plugins.config.ts.',
  ),
  HF_UPTIME_MONITOR_STATE: entry(
    409,
    '{monitor} is {state}, so this cannot be done to it.',
    'Only what is down can be acknowledged, and only what is paused resumed: `holdfast uptime list` shows how they are.',
  ),
} as const satisfies Record<string, ErrorEntry>;
