import type { ErrorEntry } from '../entry.ts';

/** Of receiving telemetry and its keys. */
export const ingestErrors = {} as const satisfies Record<string, ErrorEntry>;
