import type { Logger } from '../../../core/host/logging/logger.ts';
import { CoreError } from '../../../core/kernel/errors/core-error.ts';
import { type HoldfastError, isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Exchange } from '../exchange.ts';
import { INTERNAL_ERROR, rpcError } from '../mcp/answers.ts';
import type { Message } from '../mcp/message.ts';
import type { Told } from '../upstream/inspection.ts';

/** Ends a call that the gateway itself failed at: the log has the reason, and no upstream is blamed for it. */
export function failed(
  { exchange, message }: { readonly exchange: Exchange; readonly message: Message | undefined },
  logger: Logger,
  cause: unknown,
): Told {
  const { code, what, remedy } = logOwnFault(logger, exchange, cause);
  const { correlation } = exchange;
  if (exchange.begun) exchange.cut();
  else {
    exchange.send(
      rpcError(500, message?.id ?? null, INTERNAL_ERROR, `${what} ${remedy}`, { code, correlation }),
    );
  }
  return { outcome: 'failed' };
}

/** Answers what could not be decided: what is not in the log is not. */
export function undecided(logger: Logger, exchange: Exchange, error: unknown): void {
  const { what, remedy } = isCoded(error) ? error : logOwnFault(logger, exchange, error);
  exchange.send({ status: 503, body: { detail: `${what} ${remedy}` }, headers: { 'retry-after': '5' } });
}

/** @returns what may be told of it */
export function logOwnFault(
  logger: Logger,
  { correlation }: Pick<Exchange, 'correlation'>,
  cause: unknown,
): HoldfastError {
  const err = new CoreError('HF_INTERNAL', {}, { cause });
  logger.error({ err, correlation }, 'gateway.call_failed');
  return err;
}
