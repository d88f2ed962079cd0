/** Spans and histograms of calls, by the OpenTelemetry SDK. Loaded only where they are exported. */
import { type Attributes, type SpanContext, SpanKind } from '@opentelemetry/api';
import type { Telemetry } from '../../../core/contracts/telemetry.ts';
import {
  contextBelow,
  contextOf,
  type EndedSpan,
  exportSpan,
  traceparentOf,
} from '../fast-path/call-spans.ts';
import type { CallFacts, CallTelemetry, ToolFacts } from './call-facts.ts';
import { traceHeaders } from './call-telemetry.ts';

const SCOPE = 'holdfast.gateway';

/** Bucket boundaries of the conventions for generative AI: seconds, tokens, costs. */
const SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const TOKENS = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576];
const COSTS = [0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50];

/** @param toolSpans whether each call of a tool gets a child span as well */
export function recordedCalls(telemetry: Telemetry, toolSpans: boolean): CallTelemetry {
  const target = telemetry.spanExport(SCOPE);
  const recordTool = toolHistograms(telemetry);
  return {
    begin(carrier, agoMs = 0) {
      const startMs = Date.now() - agoMs;
      const started = performance.now() - agoMs;
      const { traceparent, tracestate } = traceHeaders(carrier);
      const parent = traceparent === undefined ? undefined : contextOf(traceparent);
      const context = contextBelow(parent);
      let ended = false;
      return {
        headers: {
          traceparent: traceparentOf(context),
          ...(parent && tracestate !== undefined && { tracestate }),
        },
        end(facts) {
          if (ended) return;
          ended = true;
          const ms = performance.now() - started;
          const times = { startMs, endMs: startMs + ms };
          exportSpan(target, { context, parent, ...times, ...serverSpan(facts) });
          if (!facts.tool) return;
          recordTool(facts, facts.tool, ms);
          if (toolSpans) exportSpan(target, { ...times, ...toolSpan(context, facts.tool.name, facts) });
        },
      };
    },
  };
}

type Described = Pick<EndedSpan, 'name' | 'kind' | 'attributes' | 'failed'>;

function serverSpan(facts: CallFacts): Described {
  return {
    name: `POST ${facts.path}`,
    kind: SpanKind.SERVER,
    attributes: attributesOf(facts),
    failed: hasFailed(facts),
  };
}

/** The client span of the conventions for MCP, which names the method and the tool. @param server its parent */
function toolSpan(
  server: SpanContext,
  tool: string,
  { outcome = 'ok' }: CallFacts,
): Described & Pick<EndedSpan, 'context' | 'parent'> {
  const failed = outcome !== 'ok';
  const attributes = {
    'mcp.method.name': 'tools/call',
    'gen_ai.tool.name': tool,
    'gen_ai.operation.name': 'execute_tool',
    ...(failed && { 'error.type': outcome }),
  };
  const context = contextBelow(server);
  return { context, parent: server, name: `tools/call ${tool}`, kind: SpanKind.CLIENT, attributes, failed };
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

/** Distinct models of a route that declares none: each is a time series for as long as the process lives. */
const MOST_MODELS = 200;

/** Names a route's models to histograms as they come, and from the 201st on `<route>/other`. */
class BoundedModels {
  readonly #byRoute = new Map<string, Set<string>>();

  nameOf({ model, undeclaredAt }: ToolFacts): string {
    if (undeclaredAt === undefined) return model;
    const models = this.#byRoute.get(undeclaredAt) ?? new Set();
    if (models.size === 0) this.#byRoute.set(undeclaredAt, models);
    if (models.has(model)) return model;
    if (models.size >= MOST_MODELS) return `${undeclaredAt}/other`;
    models.add(model);
    return model;
  }
}

/** The four histograms of calls of tools (O24). @returns a function that records one call */
function toolHistograms(telemetry: Telemetry): (facts: CallFacts, tool: ToolFacts, ms: number) => void {
  const meter = telemetry.meter(SCOPE);
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
  const cost = histogram('gen_ai.usage.cost', 'Cost of the call by the table of its route.', '{cost}', COSTS);
  const models = new BoundedModels();
  return ({ alias, owner, server }, tool, ms) => {
    const { responseMs, cost: amount, tokens } = tool;
    const attributes: Attributes = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.request.model': models.nameOf(tool),
      'mcp.server': server,
      ...(alias !== undefined && { 'metadata.user_api_key_alias': alias }),
      ...(owner !== undefined && { 'metadata.user_api_key_user_id': owner }),
    };
    operation.record(ms / 1_000, attributes);
    response.record(responseMs / 1_000, attributes);
    cost.record(amount, attributes);
    for (const type of ['input', 'output'] as const) {
      const count = tokens?.[type];
      if (count !== undefined) usage.record(count, { ...attributes, 'gen_ai.token.type': type });
    }
  };
}
