import { type Attributes, isSpanContextValid, type SpanContext, SpanKind } from '@opentelemetry/api';
import { LRUCache } from 'lru-cache';
import type { Series, Telemetry } from '../../../core/contracts/telemetry.ts';
import {
  type CallFacts,
  type CallSpan,
  type CallTelemetry,
  type ToolFacts,
  traceHeaders,
} from './call-telemetry.ts';

const SCOPE = 'holdfast.gateway';

/** Spans and histograms of calls. Loaded only where they are exported. */
export function recordedCalls(telemetry: Telemetry, toolSpans: boolean): CallTelemetry {
  const spans = telemetry.spans(SCOPE);
  const record = instruments(telemetry, SCOPE);
  return {
    begin(carrier, agoMs = 0) {
      const startMs = Date.now() - agoMs;
      const started = performance.now() - agoMs;
      const given = traceHeaders(carrier);
      const parent = parentOf(given);
      const context = spans.begin(parent);
      let ended = false;
      return {
        headers: headersOf(context, parent && given.tracestate),
        end(facts) {
          if (ended) return;
          ended = true;
          const ms = performance.now() - started;
          const times = { startMs, endMs: startMs + ms };
          const name = `POST ${facts.path}`;
          const attributes = attributesOf(facts);
          spans.end({
            context,
            parent,
            name,
            kind: SpanKind.SERVER,
            ...times,
            attributes,
            failed: hasFailed(facts),
          });
          if (!facts.tool) return;
          record(facts, facts.tool, ms);
          if (toolSpans) toolSpan(context, facts.tool.name, times, facts);
        },
      } satisfies CallSpan;
    },
  };

  /** By the conventions for MCP, which unlike the server span bears the method. */
  function toolSpan(
    parent: SpanContext,
    tool: string,
    times: { readonly startMs: number; readonly endMs: number },
    { outcome = 'ok' }: CallFacts,
  ): void {
    const failed = outcome !== 'ok';
    spans.end({
      context: spans.begin(parent),
      parent,
      name: `tools/call ${tool}`,
      kind: SpanKind.CLIENT,
      ...times,
      attributes: {
        'mcp.method.name': 'tools/call',
        'gen_ai.tool.name': tool,
        'gen_ai.operation.name': 'execute_tool',
        ...(failed && { 'error.type': outcome }),
      },
      failed,
    });
  }
}

function attributesOf({ path, server, alias, owner, status, outcome }: CallFacts): Attributes {
  const attributes: Attributes = { 'http.method': 'POST', 'http.target': path };
  if (server) attributes['mcp.server'] = server;
  if (alias !== undefined) attributes['metadata.user_api_key_alias'] = alias;
  if (owner !== undefined) attributes.user_id = owner;
  if (status !== undefined) attributes['http.status_code'] = status;
  if (outcome !== undefined) attributes['holdfast.outcome'] = outcome;
  return attributes;
}

function hasFailed({ status, outcome }: CallFacts): boolean {
  return (status ?? 0) >= 500 || outcome === 'unreachable' || outcome === 'cut';
}

function parentOf({ traceparent }: Record<string, string>): SpanContext | undefined {
  const [, traceId, spanId, flags] = traceparent?.split('-') ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  const parent = { traceId, spanId, traceFlags: Number.parseInt(flags ?? '0', 16), isRemote: true };
  return isSpanContextValid(parent) ? parent : undefined;
}

function headersOf(
  { traceId, spanId, traceFlags }: SpanContext,
  tracestate: string | undefined,
): Record<string, string> {
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
  return tracestate === undefined ? { traceparent } : { traceparent, tracestate };
}

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
