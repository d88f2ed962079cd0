import { type ErrorEntry, entry } from '../entry.ts';

/** Of the uptime monitor, heartbeats and the watchdog. */
export const uptimeErrors = {
  HF_UPTIME_TOKEN: entry(
    500,
    'There is no usable push token for the monitor {monitor}: {reason}.',
    'Put the token alone into {place}, mode 0600; the monitor shows it in its push URL, after /api/push/.',
  ),
} as const satisfies Record<string, ErrorEntry>;
