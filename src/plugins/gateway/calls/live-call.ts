import type { NamedSlab } from '../../../core/slab.ts';
import type { AnswerParams, CallEnded, ForwardParams } from '../../../machines/mcp-access.ts';
import type { Ending } from '../stop.ts';
import type { Exchange } from './exchange.ts';

/**
 * A request that is open while its decision is made: what the records may not hold. The machine decides by facts, and
 * its effects come back here.
 */
export interface LiveCall {
  /** Carries it out. Never throws: whatever goes wrong is an outcome. */
  forward(params: ForwardParams, signal: Ending): Promise<CallEnded>;
  /** Answers it without an upstream. */
  answer(params: AnswerParams): CallEnded;
}

/** The open requests by correlation. */
export type LiveCalls = NamedSlab<LiveCall>;

/** The outcome of a call, as its exchange stands. @param cost what was charged for it */
export function ended(
  { begun, status, ms, bytes, facts }: Exchange,
  told: Pick<CallEnded, 'outcome' | 'code' | 'refusal'>,
  cost?: number,
): CallEnded {
  facts.outcome = told.outcome;
  return {
    type: 'CALL_ENDED',
    outcome: told.outcome,
    ...(told.code !== undefined && { code: told.code }),
    ...(told.refusal !== undefined && { refusal: told.refusal }),
    ...(begun && status !== undefined && { status }),
    ms,
    bytes,
    ...(cost !== undefined && { cost }),
  };
}
