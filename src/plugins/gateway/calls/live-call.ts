import type { AnswerParams, CallEnded, ForwardParams } from '../../../machines/mcp-access.ts';

/**
 * A request that is open while its decision is made: what the records may not hold. The machine decides by facts, and
 * its effects come back here.
 */
export interface LiveCall {
  /** Carries it out. Never throws: whatever goes wrong is an outcome. */
  forward(params: ForwardParams, signal: AbortSignal): Promise<CallEnded>;
  /** Answers it without an upstream. */
  answer(params: AnswerParams): CallEnded;
}

/** The open requests by correlation. */
export type LiveCalls = Map<string, LiveCall>;
