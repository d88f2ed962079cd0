import type { PluginContext } from '../../../core/plugin/index.ts';
import type { AnswerParams, CallEnded, ForwardParams } from '../../../machines/mcp-access.ts';
import type { LiveCalls } from './live-call.ts';

const GONE: CallEnded = { type: 'CALL_ENDED', outcome: 'gone', ms: 0 };
const DECIDED = { status: 200 };

/**
 * The two effects of a decision. A crash loses the request with its connection, so neither is tried again: the key's
 * actor hears that its call was lost.
 */
export function registerCallEffects(context: PluginContext, calls: LiveCalls): void {
  const take = (correlation: string) => {
    const call = calls.get(correlation);
    calls.delete(correlation);
    if (call) context.services.exchanges.settle(correlation, DECIDED);
    return call;
  };
  context.effect<ForwardParams>(
    'gateway.forward',
    async (params, { correlation, signal }) => (await take(correlation)?.forward(params, signal)) ?? GONE,
    { onRecovery: 'fail', adapter: 'MCP upstreams', deadlineMs: Number.POSITIVE_INFINITY },
  );
  context.effect<AnswerParams>(
    'gateway.answer',
    (params, { correlation }) => take(correlation)?.answer(params) ?? GONE,
    { onRecovery: 'fail' },
  );
}
