/** A request for approval as people see it, on this host and on others. */
import { z } from 'zod';
import { isoTime } from '../../../core/kernel/clock.ts';
import type { Approvals } from './approvals.ts';
import { visible } from './new-request.ts';

/** Characters of a reason. */
export const LONGEST_WHY = 500;

const verdict = z.enum(['approved', 'denied']);

/** What a person decides. */
export const decisionSchema = z.strictObject({
  id: z.string().min(1).max(64),
  verdict,
  by: z.string().min(1).max(64),
  why: z.string().trim().min(1).max(LONGEST_WHY),
});

/** A request as commands and pages show it. Times are ISO 8601. */
export const approvalView = z.object({
  id: z.string(),
  state: z.string(),
  alias: z.string().exactOptional(),
  owner: z.string().exactOptional(),
  route: z.string(),
  /** The upstream's own name. */
  tool: z.string(),
  askedAt: z.string(),
  until: z.string(),
  /** As a person may see them; absent of a request that is over. */
  arguments: z.string().exactOptional(),
  /** Calls that wait for it at present. */
  callers: z.number(),
  decision: z
    .object({
      verdict,
      by: z.string(),
      why: z.string(),
      at: z.string(),
      /** The host where the person was, if it is another one than that of the request. */
      from: z.string().exactOptional(),
    })
    .exactOptional(),
  /** The other host of a cluster that has it. */
  host: z.string().exactOptional(),
});

export type ApprovalView = z.output<typeof approvalView>;

/** @returns a request; undefined of a place in which nobody ever asked */
export function viewOf(
  place: ReturnType<Approvals['places']>[number],
  approvals: Approvals,
): ApprovalView | undefined {
  const { value, context } = place;
  const { request, askedAt, until, decision: made } = context;
  if (!request) return undefined;
  const { id, alias, owner, route, tool } = request;
  const shown = approvals.shownArguments(place);
  return {
    id,
    state: String(value),
    ...(alias !== undefined && { alias }),
    ...(owner !== undefined && { owner }),
    route,
    tool: visible(tool),
    askedAt: isoTime(askedAt),
    until: isoTime(until),
    ...(shown !== undefined && { arguments: shown }),
    callers: approvals.waitersOf(id),
    ...(made && { decision: { ...made, at: isoTime(made.at) } }),
  };
}

const STATES: Readonly<Record<string, string>> = {
  approved: 'it is approved',
  used: 'it was approved, and the call was made',
  lapsed: 'it was approved, and not called in time',
  denied: 'it is denied',
  expired: 'nobody decided in time',
  withdrawn: 'it was withdrawn',
  over: 'its time is over',
};

/** @returns what became of a request, in words */
export function stateText({ state, decision: made }: ApprovalView): string {
  const on = made?.from === undefined ? '' : ` on ${made.from}`;
  const who = made ? ` (by ${made.by}${on}, ${made.at.slice(0, 19)}Z)` : '';
  return `${STATES[state] ?? 'it waits'}${who}`;
}
