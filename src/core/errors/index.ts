/**
 * Coded errors: one table says what each means and what mends it. Any folder of ours may import this one;
 * it imports nothing of ours.
 */

export type { ErrorEntry } from './entry.ts';
export { type CodedError, HoldfastError, isCoded, toErrorBody } from './holdfast-error.ts';
export { type ErrorCode, errorTable } from './table.ts';
