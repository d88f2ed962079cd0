import { type ErrorCode, errorTable } from './table.ts';

/** What a person needs of an error: its code, what happened, what to do. */
export interface CodedError {
  readonly code: ErrorCode;
  readonly what: string;
  readonly remedy: string;
}

export type ErrorDetails = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * An error that a person can meet. The code selects the sentences from the one table (`docs/reference/errors.md`);
 * `details` fill their `{placeholders}`. Never put a secret in the details: they are printed.
 */
export class HoldfastError extends Error implements CodedError {
  readonly code: ErrorCode;
  readonly what: string;
  readonly remedy: string;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, details: ErrorDetails = {}, options?: { cause?: unknown }) {
    const entry = errorTable[code];
    const what = fill(entry.what, details);
    super(`${code}: ${what}`, options);
    this.name = 'HoldfastError';
    this.code = code;
    this.what = what;
    this.remedy = fill(entry.remedy, details);
    this.details = details;
  }

  /** HTTP status that surfaces answer with when this error ends a request. */
  get status(): number {
    return errorTable[this.code].status;
  }
}

/** @returns whether an unknown value is one of our coded errors, and of this code when one is given */
export function isCoded(error: unknown, code?: ErrorCode): error is HoldfastError {
  return error instanceof HoldfastError && (code === undefined || error.code === code);
}

/** The three fields for an HTTP answer or a `--json` line; an uncoded error shows as HF_INTERNAL without its text. */
export function toErrorBody(error: unknown): CodedError & { status: number } {
  const coded = isCoded(error) ? error : new HoldfastError('HF_INTERNAL');
  return { code: coded.code, what: coded.what, remedy: coded.remedy, status: coded.status };
}

function fill(template: string, details: ErrorDetails): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => String(details[name] ?? '?'));
}
