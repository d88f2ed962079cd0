import { maskText } from '../../core/host/logging/mask-text.ts';
import { type HoldfastError, isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { ColumnarError } from './errors.ts';

const TEXT_LENGTH = 300;

/** Error codes of the engine (its ErrorCodes.cpp) that do not mean that the query is wrong. */
const CODES: Readonly<Record<string, keyof typeof ColumnarError.table>> = {
  '159': 'HF_COLUMNAR_TIMEOUT',
  '160': 'HF_COLUMNAR_TIMEOUT',
  '209': 'HF_COLUMNAR_TIMEOUT',
  '192': 'HF_COLUMNAR_CREDENTIALS',
  '193': 'HF_COLUMNAR_CREDENTIALS',
  '194': 'HF_COLUMNAR_CREDENTIALS',
  '516': 'HF_COLUMNAR_CREDENTIALS',
  '202': 'HF_COLUMNAR_BUSY',
  '252': 'HF_COLUMNAR_BUSY',
  '75': 'HF_COLUMNAR_FULL',
  '242': 'HF_COLUMNAR_FULL',
  '243': 'HF_COLUMNAR_FULL',
  '40': 'HF_COLUMNAR_DAMAGED',
  '74': 'HF_COLUMNAR_DAMAGED',
  '76': 'HF_COLUMNAR_DAMAGED',
  '107': 'HF_COLUMNAR_DAMAGED',
  '246': 'HF_COLUMNAR_DAMAGED',
};
/** Messages of the operating system, which come with various codes. */
const NO_SPACE = /No space left on device|ENOSPC/;
const MEMORY_LIMIT = '241';
const READONLY = '164';

/** Errors after which the tables' schema must be read again. */
const SCHEMA_CODES: Readonly<Record<string, 'NO_SUCH_COLUMN' | 'UNKNOWN_TABLE'>> = {
  '16': 'NO_SUCH_COLUMN',
  '60': 'UNKNOWN_TABLE',
};

/** @returns the engine's name of an error that says that a table is another than expected */
export function engineCode(error: unknown): 'NO_SUCH_COLUMN' | 'UNKNOWN_TABLE' | undefined {
  return isEngineError(error) ? SCHEMA_CODES[error.code] : undefined;
}

export type Work = 'query' | 'ask' | 'insert';

/**
 * The coded error for what the engine or the connection threw.
 *
 * @param place of the database, without credentials
 * @param seconds that the work was given
 */
export function faultOf(thrown: unknown, work: Work, place: string, seconds: number): HoldfastError {
  if (isCoded(thrown)) return thrown;
  const error = fromOldText(thrown);
  const options = { cause: error };
  if (isEngineError(error)) {
    const reason = engineText(error.message, work);
    if (error.code === READONLY && work === 'ask')
      return new ColumnarError(
        'HF_COLUMNAR_REFUSED',
        { reason: `it does not only read (${reason})` },
        options,
      );
    if (error.code === MEMORY_LIMIT && work === 'insert')
      return new ColumnarError('HF_COLUMNAR_BUSY', { reason }, options);
    const code = NO_SPACE.test(error.message)
      ? 'HF_COLUMNAR_FULL'
      : (CODES[error.code] ?? 'HF_COLUMNAR_QUERY');
    return new ColumnarError(code, { place, seconds, reason }, options);
  }
  const unreachable = connectionFault(error);
  if (unreachable !== undefined)
    return new ColumnarError('HF_COLUMNAR_UNREACHABLE', { place, reason: unreachable }, options);
  const text = error instanceof Error ? error.message : String(error);
  if (/^Code: \d+\. DB::Exception/.test(text))
    return new ColumnarError('HF_COLUMNAR_QUERY', { reason: engineText(text, work) }, options);
  return new ColumnarError('HF_COLUMNAR_ANSWER', { place, reason: sentence(text) }, options);
}

/** Servers before version 20 write `Code: 193, e.displayText() = DB::Exception: …`, which the client does not take apart. */
function fromOldText(error: unknown): unknown {
  if (!(error instanceof Error) || 'code' in error) return error;
  const [, code, text] =
    /^Code: (\d+), e\.displayText\(\) = DB::Exception: (.*?)(?:, e\.what\(\).*)?$/s.exec(error.message) ?? [];
  return code === undefined ? error : Object.assign(new Error(text, { cause: error }), { code, type: 'OLD' });
}

/** Recognised by its shape, because the embedded engine throws the class of another copy of the client. */
function isEngineError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'type' in error && 'code' in error && /^\d+$/.test(String(error.code));
}

/** The engine's error about a row quotes the row, which may contain secrets. */
function engineText(text: string, work: Work): string {
  const quoted =
    work === 'insert' ? /[:.(]?\s*(?:\(?while |before:|Row \d|\(at row )/ : /\s+While executing /;
  return sentence(text.replace(/^Code: \d+\. DB::Exception:\s*/, '').split(quoted)[0] ?? '');
}

function sentence(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return maskText(line, TEXT_LENGTH).replace(/[.:\s]+$/, '') || 'it said nothing';
}

const CONNECTION: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there (ECONNREFUSED)',
  ENOTFOUND: 'its name cannot be resolved (ENOTFOUND)',
  EAI_AGAIN: 'its name cannot be resolved now (EAI_AGAIN)',
  ECONNRESET: 'the connection broke off (ECONNRESET)',
  EPIPE: 'the connection broke off (EPIPE)',
  ETIMEDOUT: 'no connection came about (ETIMEDOUT)',
  EHOSTUNREACH: 'there is no way to it (EHOSTUNREACH)',
  ENETUNREACH: 'there is no way to it (ENETUNREACH)',
  EPROTO: 'it does not speak TLS there (EPROTO)',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS there',
};
const TLS = /^(?:CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|ERR_SSL_|HOSTNAME_MISMATCH)/;

function connectionFault(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  if (code !== undefined && CONNECTION[code]) return CONNECTION[code];
  if (code !== undefined && TLS.test(code))
    return `its certificate is not accepted (${code}); name its authority with HOLDFAST_CLICKHOUSE_CA_FILE`;
  if (error instanceof AggregateError) return connectionFault(error.errors[0]);
  if (/socket hang up|aborted|Timeout error|premature close/i.test(error.message))
    return 'the connection broke off';
  return error.cause === undefined ? undefined : connectionFault(error.cause);
}
