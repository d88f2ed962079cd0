import type { ErrorEntry } from '../entry.ts';

/** Of the uptime monitor, heartbeats and the watchdog. */
export const uptimeErrors = {} as const satisfies Record<string, ErrorEntry>;
