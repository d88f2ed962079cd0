import type { ErrorEntry } from '../entry.ts';

/** Of alert rules and their delivery. */
export const alertingErrors = {} as const satisfies Record<string, ErrorEntry>;
