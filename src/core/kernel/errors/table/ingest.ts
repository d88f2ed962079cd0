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
  HF_INGEST_NO_KEYS: entry(
    503,
    'Nothing here knows the ingest keys.',
    'Put the collector plugin into plugins.config.ts; `holdfast doctor` tells when it has failed.',
  ),
  HF_INGEST_KEY_UNKNOWN: entry(
    401,
    'The authorization header holds no ingest key that is in force.',
    "Send the ingest key (the UI's team ingestion API key, or where Holdfast is the collector that of secrets/otel_ingest_api_key in its data folder) as the whole value of the header; a rotated key is refused.",
  ),
  HF_INGEST_KEY_PREFIXED: entry(
    401,
    'The ingest key is sent behind a scheme, as `Bearer <key>`.',
    'Send the raw key as the whole value of the authorization header, without `Bearer`: OTEL_EXPORTER_OTLP_HEADERS="authorization=<key>".',
  ),
  HF_INGEST_KEY_VESTIGIAL: entry(
    401,
    'The token is `otel_ingest_token`, which admits nobody.',
    'Send the ingest key `otel_ingest_api_key` instead.',
  ),
  HF_INGEST_BODY_INVALID: entry(
    400,
    'Nothing of the body can be taken: {reason}.',
    'Send an OTLP export request, as JSON or protobuf, as its Content-Type says.',
  ),
  HF_INGEST_BODY_TOO_LARGE: entry(
    413,
    'The body is larger than the receiver takes, as it is or inflated.',
    'Send smaller batches, or raise `bodyLimit` of the otlp plugin.',
  ),
  HF_INGEST_PRESSED: entry(
    429,
    'More is being received than memory is set aside for.',
    'Try again after the time in Retry-After; exporters do so by themselves.',
  ),
  HF_INGEST_STUCK: entry(
    503,
    'Telemetry can be neither inserted nor kept: {reason}.',
    'Fix the database or make room, and it is taken again; exporters try again by themselves.',
  ),
  HF_INGEST_LOST: entry(
    503,
    'Nothing of the request was taken: {reason}.',
    'Try again after the time in Retry-After; exporters do so by themselves.',
  ),
  HF_INGEST_SPOOL: entry(
    500,
    'Telemetry cannot be received: {dir}, which keeps what is not in the database yet, cannot be used: {reason}.',
    'Move away what lies there and is no folder, or give this user the right to it, then start again.',
  ),
  HF_INGEST_MTLS: entry(
    500,
    'The listener for client certificates cannot start: {reason}.',
    'Set mtls.certFile, mtls.keyFile and mtls.clientCaFile of the otlp plugin to PEM files that this user can read.',
  ),
} as const satisfies Record<string, ErrorEntry>;
