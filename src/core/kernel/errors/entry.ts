/** One row of the table. `{name}` is filled from the error's details. */
export interface ErrorEntry {
  /** What happened, as one sentence. */
  readonly what: string;
  /** What to do about it, as one sentence. */
  readonly remedy: string;
  /** HTTP status when the error ends a request. */
  readonly status: number;
}

export const entry = (status: number, what: string, remedy: string): ErrorEntry => ({ status, what, remedy });
