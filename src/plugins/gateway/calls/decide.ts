import type { AccessCall } from '../../../machines/gateway/key.ts';
import { DECISION_MS } from '../decision.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import type { Message } from '../mcp/message.ts';
import { upstreamName } from '../mcp/tool-names.ts';
import type { Route } from '../routes/route.ts';
import { undecided } from './failed.ts';
import type { Facts, Judged } from './judged.ts';
import type { OpenFacts } from './key-usage.ts';
import type { LiveCall } from './live-call.ts';
import type { GatewayParts } from './parts.ts';
import { Repeats } from './repeats.ts';
import { callMade } from './topics.ts';
import { traceCall } from './trace.ts';

/** What a call means: the one route, or for the aggregate all that it may go to. */
export interface Meant {
  /** Of the endpoint, without a query. */
  readonly path: string;
  readonly routes: readonly string[];
  readonly route?: Route | undefined;
  /** What stands for the method of a request without a message that could be read. */
  readonly unread?: Pick<AccessCall, 'method' | 'bytes'> & OpenFacts;
}

/** Lets the key's machine decide about a call, which it then carries out or answers. */
export function judgeCall(
  parts: GatewayParts,
  exchange: Exchange,
  caller: AuthenticatedKey,
  message: Message | undefined,
  meant: Meant,
  call: LiveCall,
): Promise<void> {
  traceCall(parts, exchange, meant.path, caller.id, message);
  const facts = factsOf(parts, exchange, caller, message, meant);
  const { presented, method, tool = '', authorization = '', misplaced } = facts;
  const { where = '' } = misplaced ?? {};
  const name = `${caller.id} ${presented} ${method} ${tool} ${authorization} ${where} ${meant.routes.join(' ')}`;
  return parts.repeats.judge({ name, exchange, call, key: caller.id, facts });
}

function factsOf(
  { table }: GatewayParts,
  exchange: Exchange,
  { presented, authorization, misplaced }: AuthenticatedKey,
  message: Message | undefined,
  { routes, route, unread }: Meant,
): Facts {
  const method = unread?.method ?? methodOf(exchange.method, message);
  const isToolCall = message?.method === 'tools/call' && message.name !== undefined;
  const tool = isToolCall && route ? upstreamName(route, message.name ?? '') : undefined;
  const cost = tool === undefined ? 0 : (route?.costOf(tool) ?? 0);
  // Set one by one: spreading what may be there takes longer than to judge it.
  const facts: Facts = { type: 'CALL', at: 0, presented, routes, table: table().revision, method };
  if (isToolCall) {
    facts.tool = message.name ?? '';
    if (tool === undefined || !route?.offers(tool)) facts.toolUnlisted = true;
  }
  if (authorization) facts.authorization = authorization;
  if (misplaced) facts.misplaced = misplaced;
  if (route?.entry.disposition === 'relay') facts.relay = true;
  if (route?.entry.writes) facts.writes = true;
  if (cost > 0) facts.cost = cost;
  return unread ? Object.assign(facts, unread) : facts;
}

function methodOf(method: Exchange['method'], message: Message | undefined): string {
  if (message) return message.method ?? 'reply';
  return method === 'GET' ? 'stream' : 'close';
}

/** Where calls of known keys are decided. */
export function judgement(parts: Pick<GatewayParts, 'services' | 'calls' | 'slots'>): Repeats<Judged> {
  const { clock, logger } = parts.services;
  return new Repeats<Judged>(
    clock,
    (judged, call, count) => decide(parts, judged, call, count),
    ({ exchange }, error) => undecided(logger, exchange, error),
  );
}

/**
 * Publishes the facts, and waits for the decision.
 *
 * @throws HF_LOG_WRITE, HF_LOG_WAITING, HF_HTTP_TIMEOUT it can't be recorded
 */
async function decide(
  { services, calls, slots }: Pick<GatewayParts, 'services' | 'calls' | 'slots'>,
  { exchange, key, facts }: Judged,
  call: LiveCall,
  count?: number,
): Promise<void> {
  const { correlation } = exchange;
  calls.set(correlation, call);
  const decided = services.exchanges.open(correlation, DECISION_MS);
  try {
    if (facts.method !== 'unread') Object.assign(facts, slots.enter(key, facts.method, exchange));
    if (count !== undefined) facts.count = count;
    facts.at = services.clock.now();
    services.bus.publish(callMade, { key, call: facts }, { correlation });
    await decided;
  } catch (error) {
    calls.take(correlation);
    throw error;
  }
}
