import { CoreError } from '../errors/core-error.ts';

/** @throws HF_LOG_DAMAGED SQLite cannot make sense of the file */
export function sound<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CoreError('HF_LOG_DAMAGED', { reason }, { cause: error });
  }
}
