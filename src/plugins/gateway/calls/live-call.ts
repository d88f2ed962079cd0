import type { NamedSlab } from '../../../core/kernel/slab.ts';
import type { Writable } from '../../../core/kernel/writable.ts';
import type { AnswerParams, CallEnded, ForwardParams } from '../../../machines/gateway/key.ts';
import type { Exchange } from '../exchange.ts';
import type { Stop } from '../stop.ts';

/**
 * A request that is open while its decision is made: what the records may not hold. The machine decides by facts, and
 * its effects come back here.
 */
export interface LiveCall {
  /**
   * Carries it out. Never throws: whatever goes wrong is an outcome.
   *
   * @param stop ends it; it is to end with what else may end this call, and is released when the call is over
   */
  forward(params: ForwardParams, stop: Stop): Promise<CallEnded>;
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
  const { outcome, code, refusal } = told;
  facts.outcome = outcome;
  // Set one by one: spreading what may be there takes longer.
  const event: Writable<CallEnded> = { type: 'CALL_ENDED', outcome, ms, bytes };
  if (code !== undefined) event.code = code;
  if (refusal !== undefined) event.refusal = refusal;
  if (begun && status !== undefined) event.status = status;
  if (cost !== undefined) event.cost = cost;
  return event;
}
