import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of the intake of telemetry. */
export const OtlpError = defineErrors({
  HF_OTLP_NO_KEYS: {
    status: 503,
    what: 'No plugin provides the ingest keys.',
    remedy: 'Put the collector plugin into plugins.config.ts; `holdfast doctor` shows whether it has failed.',
  },
  HF_OTLP_KEY_UNKNOWN: {
    status: 401,
    what: 'The authorization header holds no ingest key that is in force.',
    remedy:
      "Send the ingest key (the UI's team ingestion API key, or where Holdfast is the collector that of secrets/otel_ingest_api_key in its data folder) as the whole value of the header; a rotated key is refused.",
  },
  HF_OTLP_KEY_PREFIXED: {
    status: 401,
    what: 'The ingest key is sent behind a scheme, as `Bearer <key>`.',
    remedy:
      'Send the raw key as the whole value of the authorization header, without `Bearer`: OTEL_EXPORTER_OTLP_HEADERS="authorization=<key>".',
  },
  HF_OTLP_KEY_LEGACY: {
    status: 401,
    what: 'The token is the old `otel_ingest_token`, which admits nobody.',
    remedy: 'Send the ingest key `otel_ingest_api_key` instead.',
  },
  HF_OTLP_BODY_INVALID: {
    status: 400,
    what: 'Nothing of the body can be taken: {reason}.',
    remedy: 'Send an OTLP export request, as JSON or protobuf, as its Content-Type says.',
  },
  HF_OTLP_BODY_TOO_LARGE: {
    status: 413,
    what: 'The body is larger than the receiver takes, as it is or inflated.',
    remedy: 'Send smaller batches, or raise `bodyLimit` of the otlp plugin.',
  },
  HF_OTLP_OVERLOADED: {
    status: 429,
    what: 'The memory for bodies that are being received is used up.',
    remedy: 'Try again after the time in Retry-After; exporters do so by themselves.',
  },
  HF_OTLP_UNAVAILABLE: {
    status: 503,
    what: 'Telemetry can be neither inserted nor kept: {reason}.',
    remedy: 'Fix the database or make room, and it is taken again; exporters try again by themselves.',
  },
  HF_OTLP_INTERRUPTED: {
    status: 503,
    what: 'Nothing of the request was taken: {reason}.',
    remedy: 'Try again after the time in Retry-After; exporters do so by themselves.',
  },
  HF_OTLP_SPOOL: {
    status: 500,
    what: 'Telemetry cannot be received: {dir}, which keeps what is not in the database yet, cannot be used: {reason}.',
    remedy:
      'If it is not a folder, move it away; otherwise give this user the right to write there. Then start again.',
  },
  HF_OTLP_MTLS: {
    status: 500,
    what: 'The listener for client certificates cannot start: {reason}.',
    remedy:
      'Set mtls.certFile, mtls.keyFile and mtls.clientCaFile of the otlp plugin to PEM files that this user can read.',
  },
});
