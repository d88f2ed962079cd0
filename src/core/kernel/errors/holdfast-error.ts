/** A code that a person and a program can look up: `HF_<FEATURE>_<WHAT>`. Every plugin brings its own. @public */
export type ErrorCode = `HF_${string}`;

/** One row of a table. `{name}` is filled from the error's details. */
export interface ErrorEntry {
  /** Status of the answer when the error ends a request: 4xx the caller's fault, 5xx ours. */
  readonly status: number;
  /** What happened, as one sentence. */
  readonly what: string;
  /** What to do about it, as one sentence. */
  readonly remedy: string;
}

export type ErrorTable = Readonly<Record<ErrorCode, ErrorEntry>>;

/** The error that a person sees in the place of one without a code. */
export const internalError = {
  HF_INTERNAL: {
    status: 500,
    what: 'Something failed that Holdfast did not foresee.',
    remedy:
      'Look for the same correlation id in the log lines; if it repeats, report it with `holdfast log show`.',
  },
} as const satisfies ErrorTable;

/** What a person needs of an error: its code, what happened, what to do. @public */
export interface CodedError {
  readonly code: ErrorCode;
  readonly what: string;
  readonly remedy: string;
}

export type ErrorDetails = Readonly<Record<string, string | number | boolean | undefined>>;

/** A coded error as plain data, for another thread or process. */
export interface ErrorData extends CodedError {
  readonly status: number;
  readonly details: ErrorDetails;
}

/**
 * An error that a person can meet. Errors are made by the classes of `defineErrors`, whose tables have their sentences;
 * this is what they share. Never put a secret in the details: they are printed.
 *
 * @public
 */
export class HoldfastError<C extends ErrorCode = ErrorCode> extends Error implements ErrorData {
  readonly code: C;
  readonly what: string;
  readonly remedy: string;
  /** Status of the answer when this error ends a request. */
  readonly status: number;
  readonly details: ErrorDetails;

  /** @param entry the sentences with their places filled */
  constructor(code: C, entry: ErrorEntry, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(`${code}: ${entry.what}`, options);
    this.name = 'HoldfastError';
    this.code = code;
    this.what = entry.what;
    this.remedy = entry.remedy;
    this.status = entry.status;
    this.details = details;
  }

  /** The error as data; its cause stays here. */
  toData(): ErrorData {
    const { code, what, remedy, status, details } = this;
    return { code, what, remedy, status, details };
  }

  /** An error that another thread or process met. */
  static fromData({ code, what, remedy, status, details }: ErrorData): HoldfastError {
    return new HoldfastError(code, { what, remedy, status }, details);
  }
}

/** A class of errors: one table, whose codes are the only ones that it takes. @public */
export interface ErrorClass<C extends ErrorCode> {
  /** @param details fill the `{places}` of the sentences */
  new (code: C, details?: ErrorDetails, options?: ErrorOptions): HoldfastError<C>;
  readonly table: Readonly<Record<C, ErrorEntry>>;
}

/**
 * Declares the errors of a plugin, or of a contract between plugins.
 *
 * @example
 * export const LogError = defineErrors({
 *   HF_LOG_RANGE: { status: 400, what: 'There is no record {seq}.', remedy: 'Name one of {first} to {last}.' },
 * });
 * throw new LogError('HF_LOG_RANGE', { seq, first, last });
 * @public
 */
export function defineErrors<C extends ErrorCode>(table: Readonly<Record<C, ErrorEntry>>): ErrorClass<C> {
  return class extends HoldfastError<C> {
    static readonly table = table;

    constructor(code: C, details: ErrorDetails = {}, options?: ErrorOptions) {
      const { what, remedy, status } = table[code];
      super(code, { what: fill(what, details), remedy: fill(remedy, details), status }, details, options);
    }
  };
}

/**
 * Tells an error of Holdfast, or of a plugin's `defineErrors`, from any other.
 *
 * @returns whether the value is one, and of this code when one is given
 *
 * @public
 */
export function isCoded<C extends ErrorCode>(error: unknown, code?: C): error is HoldfastError<C> {
  return error instanceof HoldfastError && (code === undefined || error.code === code);
}

/** The fields that whoever asked may read, in an answer or as `--json`; an uncoded error shows as HF_INTERNAL without its text. */
export function toErrorBody(error: unknown): CodedError & { status: number } {
  if (!isCoded(error)) return { code: 'HF_INTERNAL', ...internalError.HF_INTERNAL };
  const { code, what, remedy, status } = error;
  return { code, what, remedy, status };
}

function fill(template: string, details: ErrorDetails): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => String(details[name] ?? '?'));
}
