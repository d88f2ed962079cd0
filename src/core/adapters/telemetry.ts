import type { Meter, Tracer } from '@opentelemetry/api';
import { defineToken, type Token } from '../plugin/token.ts';

/** Our own spans and instruments, by the OpenTelemetry SDK; where no receiver is configured they do nothing and cost nothing. */
export interface Telemetry {
  readonly enabled: boolean;
  tracer(scope: string): Tracer;
  meter(scope: string): Meter;
}

/** Provided by the plugin that exports our own telemetry. */
export const TelemetryToken: Token<Telemetry> = defineToken('telemetry');
