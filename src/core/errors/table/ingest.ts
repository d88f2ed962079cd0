import { type ErrorEntry, entry } from '../entry.ts';

/** Of receiving telemetry and its keys. */
export const ingestErrors = {
  HF_INGEST_NO_KEY: entry(
    503,
    'No ingest key is known: {reason}.',
    '`holdfast doctor stack` tells what the collector config lacks; the UI makes the key at its first start.',
  ),
  HF_INGEST_ROTATION: entry(
    409,
    'The ingest key is not rotated: {reason}.',
    '`holdfast stack rotate-ingest-key --show` tells how the rotation stands, `holdfast stack secrets` what each key is for.',
  ),
  HF_INGEST_UI: entry(
    502,
    'The UI made no new ingest key: {reason}.',
    "Look at the collector plugin's option `ui`, or leave it out and make the key in the UI: Team Settings, API Keys.",
  ),
} as const satisfies Record<string, ErrorEntry>;
