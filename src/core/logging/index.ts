/**
 * Log lines and the one redactor, which spans, error answers and pages pass through as well.
 *
 * Anything in `core` and any plugin may import this folder; it imports only JSON and errors.
 */
export { type CreateLoggerOptions, createLogger, type Logger, type LogLevel } from './logger.ts';
export { maskText, REDACTED } from './mask-text.ts';
export { type Bounds, PAGE, redact } from './redact.ts';
export { countSecrets, type SecretCount } from './secret-fields.ts';
