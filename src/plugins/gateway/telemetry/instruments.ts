import type { Attributes } from '@opentelemetry/api';
import { LRUCache } from 'lru-cache';
import type { Series, Telemetry } from '../../../core/contracts/telemetry.ts';
import type { CallFacts, ToolFacts } from './telemetry.ts';

/** Bounds of the conventions for generative AI, seconds and tokens. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];
const COSTS = [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50];

/** What is recorded of calls by one key of one model. */
interface SeriesOfCalls {
  readonly operation: Series;
  readonly response: Series;
  readonly cost: Series;
  readonly attributes: Attributes;
}

/** Keys and tools that are called now; of the others the series is found again. */
const MOST_KNOWN = 1_000;

/** The four histograms (O24). @returns records one call of a tool */
export function instruments(
  telemetry: Telemetry,
  scope: string,
): (facts: CallFacts, tool: ToolFacts, ms: number) => void {
  const histogram = (name: string, description: string, unit: string, bounds: number[]) =>
    telemetry.histogram(scope, { name, description, unit, bounds });
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
  const known = new LRUCache<string, SeriesOfCalls>({ max: MOST_KNOWN });
  const find = (name: string, { alias, owner, server }: CallFacts, model: string): SeriesOfCalls => {
    const attributes: Attributes = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.request.model': model,
      'mcp.server': server,
      ...(alias !== undefined && { 'metadata.user_api_key_alias': alias }),
      ...(owner !== undefined && { 'metadata.user_api_key_user_id': owner }),
    };
    const all = [operation, response, cost].map((one) => one.of(attributes));
    const [first, second, third] = all as [Series, Series, Series];
    const found = { operation: first, response: second, cost: third, attributes };
    known.set(name, found);
    return found;
  };
  return (facts, tool, ms) => {
    const name = `${facts.server}\n${facts.alias ?? ''}\n${facts.owner ?? ''}\n${tool.model}`;
    const series = known.get(name) ?? find(name, facts, tool.model);
    series.operation.record(ms / 1_000);
    series.response.record(tool.responseMs / 1_000);
    series.cost.record(tool.cost);
    const { input, output } = tool.tokens ?? {};
    const used = (type: string, tokens: number) =>
      usage.of({ ...series.attributes, 'gen_ai.token.type': type }).record(tokens);
    if (input !== undefined) used('input', input);
    if (output !== undefined) used('output', output);
  };
}
