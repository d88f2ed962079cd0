import type { ErrorEntry } from '../entry.ts';

/** Of the cluster's API. */
export const clusterErrors = {} as const satisfies Record<string, ErrorEntry>;
