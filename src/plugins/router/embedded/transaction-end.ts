import { z } from 'zod';
import { type ConsoleAction, consoleActions } from '../../../core/contracts/console.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../../core/host/plugin/definition.ts';
import { isObject } from '../../../core/kernel/json.ts';
import { RouterError } from '../errors.ts';
import type { ConfigWrites } from './config-writes.ts';
import { transactionOf } from './pending-transaction.ts';

const PATH = '/router/transaction/end';
const body = z.strictObject({ op: z.enum(['commit', 'revert']), by: z.string().min(1).max(64) });

const action = (op: 'commit' | 'revert', title: string, confirm: string): ConsoleAction => ({
  name: `router-${op}`,
  title,
  confirm,
  fields: [],
  operation: PATH,
  body: (_fields, by) => ({ op, by }),
});

/** Ends the pending transaction, whichever it is, by the write that a client of the router makes. */
export function registerTransactionEnd(
  context: PluginContext<{ readonly writes: ConfigWrites; readonly services: Services }>,
): void {
  context.control((surface, { writes, services }) =>
    serveOperation(surface, PATH, body, async ({ op, by }, { correlation }) => {
      const transID = transactionOf(services)?.transID;
      if (transID === undefined) throw new RouterError('HF_ROUTER_TRANSACTION_NONE');
      const writer = { request: correlation, correlation, who: `${by}, in the console` };
      const { status, body: answer } = await writes.set({ transactionOp: op, transID }, writer);
      if (status === 200) return answer;
      const why = isObject(answer) && typeof answer.code === 'string' ? answer.code : status;
      throw new RouterError('HF_ROUTER_REQUEST_INVALID', { reason: `the router refused the ${op}: ${why}` });
    }),
  );
  const commit = action('commit', 'Commit the pending change', 'The config that is applied now stays.');
  const revert = action('revert', 'Revert the pending change', 'The config from before it is applied again.');
  for (const one of [commit, revert]) context.contribute(consoleActions, one);
}
