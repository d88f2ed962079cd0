import { isCoded } from '../../../core/errors/index.ts';
import { type Caller, identify, type Known } from '../keys/caller.ts';
import { unauthorized } from '../mcp/answers.ts';
import type { Message } from '../mcp/message.ts';
import { upstreamName } from '../mcp/tool-names.ts';
import type { Route } from '../routes/table.ts';
import type { Exchange } from './exchange.ts';
import type { LiveCall } from './live-call.ts';
import type { GatewayParts } from './parts.ts';
import { callMade } from './topics.ts';
import { traceCall } from './trace.ts';

/** How long a decision may take: it waits for its record only. */
const DECISION_MS = 10_000;

/** Where a request came in. */
export interface Entrance {
  /** Address of the caller. */
  readonly source: string;
  readonly path: string;
}

/** What a call means: the one route, or for the aggregate all that it may go to. */
export interface Meant {
  /** Of the endpoint, without a query. */
  readonly path: string;
  readonly routes: readonly string[];
  readonly route?: Route | undefined;
}

/** @returns the caller; undefined for somebody without a key, who is turned away */
export function admit(parts: GatewayParts, exchange: Exchange, entrance: Entrance): Known | undefined {
  const caller = identify(exchange.headers, parts.keys, parts.masterId());
  if (!('rule' in caller)) return caller;
  void turnAway(parts, exchange, caller, entrance);
  return undefined;
}

/** Somebody without a key: recorded by one actor, then answered. */
async function turnAway(
  parts: GatewayParts,
  exchange: Exchange,
  { rule, misplaced }: Extract<Caller, { rule: string }>,
  entrance: Entrance,
): Promise<void> {
  traceCall(parts, exchange, entrance.path);
  exchange.facts.outcome = 'answered';
  try {
    const refusal = { rule, ...entrance, ...(misplaced && { misplaced }) };
    const decided = await parts.door.turnAway(refusal, exchange.correlation);
    exchange.send(unauthorized(decided) ?? { status: 401 });
  } catch (error) {
    undecided(exchange, error);
  }
}

/** Lets the key's machine decide about a call, which it then carries out or answers. */
export function judgeCall(
  parts: GatewayParts,
  exchange: Exchange,
  caller: Known,
  message: Message | undefined,
  meant: Meant,
  call: LiveCall,
): Promise<void> {
  traceCall(parts, exchange, meant.path, caller.id, message);
  return decide(parts, exchange, call, () => publishCall(parts, exchange, caller, message, meant));
}

function publishCall(
  { services, table, slots }: GatewayParts,
  exchange: Exchange,
  { id, presented, authorization }: Known,
  message: Message | undefined,
  { routes, route }: Meant,
): void {
  const { correlation } = exchange;
  const method = methodOf(exchange.method, message);
  const isToolCall = message?.method === 'tools/call' && message.name !== undefined;
  const tool = isToolCall && route ? upstreamName(route, message.name ?? '') : undefined;
  const cost = tool === undefined ? 0 : (route?.costOf(tool) ?? 0);
  services.bus.publish(
    callMade,
    {
      key: id,
      at: services.clock.now(),
      presented,
      routes,
      table: table().revision,
      method,
      ...slots.enter(id, method, exchange),
      ...(isToolCall && { tool: message.name }),
      ...(isToolCall && (tool === undefined || !route?.offers(tool)) && { toolUnlisted: true as const }),
      ...(authorization && { authorization }),
      ...(route?.entry.disposition === 'relay' && { relay: true as const }),
      ...(route?.entry.writes && { writes: true as const }),
      ...(cost > 0 && { cost }),
    },
    { correlation },
  );
}

function methodOf(method: Exchange['method'], message: Message | undefined): string {
  if (message) return message.method ?? 'reply';
  return method === 'GET' ? 'stream' : 'close';
}

/** Publishes the facts, and answers 503 when what is decided about them can't be recorded. */
async function decide(
  { services, calls }: GatewayParts,
  exchange: Exchange,
  call: LiveCall,
  publish: () => void,
): Promise<void> {
  const { correlation } = exchange;
  calls.set(correlation, call);
  const decided = services.exchanges.open(correlation, DECISION_MS);
  try {
    publish();
    await decided;
  } catch (error) {
    calls.delete(correlation);
    undecided(exchange, error);
  }
}

/** What is not in the log is not decided. */
function undecided(exchange: Exchange, error: unknown): void {
  const text = isCoded(error) ? `${error.what} ${error.mend}` : 'The gateway failed.';
  exchange.send({ status: 503, body: { detail: text }, headers: { 'retry-after': '5' } });
}
