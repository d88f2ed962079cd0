/**
 * One server span a call and the four `gen_ai.*` histograms (O24), by the OpenTelemetry SDK, which is loaded only where
 * a receiver is configured. What may be told of a call is `CallFacts`, and nothing else.
 */
import { noTelemetry, type Telemetry, type TelemetryOptions } from './telemetry.ts';

export type { CallFacts, CallSpan, Telemetry, TelemetryOptions, ToolFacts } from './telemetry.ts';

/** @param options without an endpoint nothing is measured */
export async function openTelemetry({
  endpoint,
  ...rest
}: Omit<TelemetryOptions, 'endpoint'> & { readonly endpoint?: string | undefined }): Promise<Telemetry> {
  if (endpoint === undefined) return noTelemetry;
  return (await import('./otlp.ts')).otlpTelemetry({ endpoint, ...rest });
}
