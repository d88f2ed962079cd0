import { defineErrors } from '../../core/kernel/errors/holdfast-error.ts';

/** Errors of our own telemetry. */
export const TelemetryError = defineErrors({
  HF_TELEMETRY_HEARTBEAT: {
    status: 502,
    what: 'The heartbeat could not be delivered to {place}: {reason}.',
    remedy: 'See that the collector runs and listens there, and that --token-file holds its ingest key.',
  },
});
