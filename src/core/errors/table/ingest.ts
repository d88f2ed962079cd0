import { type ErrorEntry, entry } from '../entry.ts';

/** Of receiving telemetry and its keys. */
export const ingestErrors = {
  HF_INGEST_NO_KEY: entry(
    503,
    'No ingest key is known: {reason}.',
    '`holdfast doctor stack` tells what the collector config lacks; the UI makes the key at its first start.',
  ),
} as const satisfies Record<string, ErrorEntry>;
