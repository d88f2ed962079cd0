import type { ErrorEntry } from '../entry.ts';

/** Of the columnar database. */
export const columnarErrors = {} as const satisfies Record<string, ErrorEntry>;
