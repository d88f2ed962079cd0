/**
 * How long a caller waits for a decision, milliseconds: it is made at once, and waits for its record only. Beyond that
 * the answer is HF_HTTP_TIMEOUT, and what was decided is in the log.
 */
export const DECISION_MS = 10_000;
