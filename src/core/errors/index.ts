/**
 * Coded errors: one table says what each means and what mends it. Any folder of ours may import this one;
 * it imports nothing.
 */
export { type CodedError, HoldfastError, isCoded, toErrorBody } from './holdfast-error.ts';
export { type ErrorCode, type ErrorEntry, errorTable } from './table.ts';
