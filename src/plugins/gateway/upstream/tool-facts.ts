import { upstreamName } from '../mcp/tool-names.ts';
import type { Told } from './outcome.ts';
import type { PassParts } from './pass-parts.ts';

/** Tells telemetry of a tool's call that its upstream begins to answer. @param cost what is charged for it */
export function noteTool({ exchange, route, message }: PassParts, cost = 0): void {
  if (message?.method !== 'tools/call') return;
  const tool = upstreamName(route, message.name ?? '');
  if (tool === undefined) return;
  const model = route.entry.model ?? `${route.name}/${tool}`;
  exchange.facts.tool = { name: tool, model, cost, responseMs: exchange.ms };
}

/** Tells telemetry of the tokens that the result reports. */
export function noteTokens({ exchange }: PassParts, { tokens }: Told): void {
  const { facts } = exchange;
  if (tokens && facts.tool) facts.tool = { ...facts.tool, tokens };
}
