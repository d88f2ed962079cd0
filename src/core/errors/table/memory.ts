import type { ErrorEntry } from '../entry.ts';

/** Of the memory store, its snapshots and drills. */
export const memoryErrors = {} as const satisfies Record<string, ErrorEntry>;
