/**
 * One server span a call and the four `gen_ai.*` histograms (O24), exported by whatever plugin provides telemetry. What may
 * be told of a call is `CallFacts`, and nothing else.
 */
import type { Telemetry } from '../../../core/contracts/telemetry.ts';
import { type CallTelemetry, noTelemetry } from './telemetry.ts';

export type { CallFacts, CallSpan, CallTelemetry, ToolFacts } from './telemetry.ts';

/** @param telemetry where it is absent or disabled nothing is measured, and nothing loaded for it */
export async function callTelemetry(
  telemetry: Telemetry | undefined,
  toolSpans: boolean,
): Promise<CallTelemetry> {
  if (!telemetry?.enabled) return noTelemetry;
  return (await import('./recorded-calls.ts')).recordedCalls(telemetry, toolSpans);
}
