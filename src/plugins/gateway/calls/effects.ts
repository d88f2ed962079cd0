import type { PluginContext } from '../../../core/host/plugin/definition.ts';
import type { AnswerParams, CallEnded, ConfineParams, ForwardParams } from '../../../machines/gateway/key.ts';
import type { LiveCalls } from './live-call.ts';
import { OpenCalls } from './open-calls.ts';

const GONE: CallEnded = { type: 'CALL_ENDED', outcome: 'gone', ms: 0 };
const DECIDED = { status: 200 };

/**
 * The effects of a decision, and of a change of the key that a call was decided by. A crash loses the request with its
 * connection, so none is tried again: the key's actor hears that its call was lost.
 */
export function registerCallEffects(context: PluginContext, calls: LiveCalls): void {
  const take = (correlation: string) => {
    const call = calls.take(correlation);
    if (call) context.services.exchanges.settle(correlation, DECIDED);
    return call;
  };
  let openCalls: OpenCalls | undefined;
  const open = () => {
    openCalls ??= new OpenCalls(context.services.clock);
    return openCalls;
  };
  context.effect<ForwardParams>(
    'gateway.forward',
    (params, { correlation, signal, actor }) => {
      const call = take(correlation);
      // It was given up while it waited for its decision, and its upstream has not heard of it.
      if (!call) return { ...GONE, ...(params.cost !== undefined && { cost: params.cost }) };
      return open().run(actor, params, signal, (admitted) => call.forward(params, admitted));
    },
    { onRecovery: 'fail', adapter: 'MCP upstreams', deadlineMs: Number.POSITIVE_INFINITY },
  );
  context.effect<AnswerParams>(
    'gateway.answer',
    (params, { correlation }) => take(correlation)?.answer(params) ?? GONE,
    { onRecovery: 'fail' },
  );
  context.effect<ConfineParams>('gateway.confine', (params, { actor }) => open().confine(actor, params), {
    onRecovery: 'retry',
  });
}
