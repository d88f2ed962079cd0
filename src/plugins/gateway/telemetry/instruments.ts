import type { Attributes, Meter } from '@opentelemetry/api';
import type { CallFacts, ToolFacts } from './telemetry.ts';

/** Bounds of the conventions for generative AI, seconds and tokens. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];
const COSTS = [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50];

/** The four histograms (O24). @returns records one call of a tool */
export function instruments(meter: Meter): (facts: CallFacts, tool: ToolFacts, ms: number) => void {
  const histogram = (name: string, description: string, unit: string, bounds: number[]) =>
    meter.createHistogram(name, { description, unit, advice: { explicitBucketBoundaries: bounds } });
  const operation = histogram(
    'gen_ai.client.operation.duration',
    'From the call to the end of its answer.',
    's',
    SECONDS,
  );
  const response = histogram(
    'gen_ai.client.response.duration',
    'From the call to the beginning of its answer.',
    's',
    SECONDS,
  );
  const usage = histogram(
    'gen_ai.client.token.usage',
    'Tokens that the upstream reports.',
    '{token}',
    TOKENS,
  );
  const cost = histogram(
    'gen_ai.usage.cost',
    'What the call costs by the table of its route.',
    '{cost}',
    COSTS,
  );
  return ({ alias, owner, server }, tool, ms) => {
    const attributes: Attributes = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.request.model': tool.model,
      'mcp.server': server,
      ...(alias !== undefined && { 'metadata.user_api_key_alias': alias }),
      ...(owner !== undefined && { 'metadata.user_api_key_user_id': owner }),
    };
    operation.record(ms / 1_000, attributes);
    response.record(tool.responseMs / 1_000, attributes);
    cost.record(tool.cost, attributes);
    const { input, output } = tool.tokens ?? {};
    if (input !== undefined) usage.record(input, { ...attributes, 'gen_ai.token.type': 'input' });
    if (output !== undefined) usage.record(output, { ...attributes, 'gen_ai.token.type': 'output' });
  };
}
