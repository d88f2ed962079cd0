/** What a person sees of calls that wait, and decides: the operations of `gateway approvals`, `approve` and `deny`. */
import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { isoTime } from '../../../core/kernel/clock.ts';
import type { Verdict } from '../../../machines/gateway/approval.ts';
import { GatewayError } from '../errors.ts';
import { approvalActor } from './actor.ts';
import type { Approvals } from './approvals.ts';
import { visible } from './new-request.ts';

export const APPROVALS_PATH = '/gateway/approvals';
export const DECIDE_PATH = '/gateway/approvals/decide';

/** Characters of a reason. */
export const LONGEST_WHY = 500;
const nothing = z.strictObject({});
const decision = z.strictObject({
  id: z.string().min(1).max(64),
  verdict: z.enum(['approved', 'denied']),
  by: z.string().min(1).max(64),
  why: z.string().trim().min(1).max(LONGEST_WHY),
});

/** A request as commands and pages show it. Times are ISO 8601. */
export interface ApprovalView {
  readonly id: string;
  readonly state: string;
  readonly alias?: string;
  readonly owner?: string;
  readonly route: string;
  /** The upstream's own name. */
  readonly tool: string;
  readonly askedAt: string;
  readonly until: string;
  /** As a person may see them; absent of a request that is over. */
  readonly arguments?: string;
  /** Calls that wait for it at present. */
  readonly callers: number;
  readonly decision?: {
    readonly verdict: Verdict;
    readonly by: string;
    readonly why: string;
    readonly at: string;
  };
}

interface ApprovalServices {
  readonly services: Pick<Services, 'actors' | 'clock'>;
  readonly approvals: Approvals;
}

/** Serves both on the control socket. */
export function serveApprovalOperations(surface: HttpSurface, gateway: ApprovalServices): void {
  serveOperation(surface, APPROVALS_PATH, nothing, () => {
    const { approvals } = gateway;
    const views = approvals.places().flatMap((place) => viewOf(place, approvals) ?? []);
    return { approvals: views.sort((one, other) => (one.askedAt < other.askedAt ? 1 : -1)) };
  });
  serveOperation(surface, DECIDE_PATH, decision, (wanted, { correlation }) =>
    decide(gateway, wanted, correlation),
  );
}

/**
 * Decides a request, durably.
 *
 * @throws HF_GATEWAY_APPROVAL_UNKNOWN, HF_GATEWAY_APPROVAL_DECIDED
 */
export async function decide(
  { services: { actors, clock }, approvals }: ApprovalServices,
  { id, ...verdict }: z.output<typeof decision>,
  correlation: string,
): Promise<ApprovalView> {
  const place = approvals.find(id);
  if (!place) throw new GatewayError('HF_GATEWAY_APPROVAL_UNKNOWN', { id });
  const event = { type: 'DECIDED', at: clock.now(), id, ...verdict } as const;
  const { from, to } = await actors.send(approvalActor, place.key, event, { correlation }).durable();
  const now = approvals.find(id);
  const view = now && viewOf(now, approvals);
  if (!view) throw new GatewayError('HF_GATEWAY_APPROVAL_UNKNOWN', { id });
  if (from !== 'waiting' || to.value === 'waiting') {
    throw new GatewayError('HF_GATEWAY_APPROVAL_DECIDED', { id, state: stateText(view) });
  }
  return view;
}

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
  const who = made ? ` (by ${made.by}, ${made.at.slice(0, 19)}Z)` : '';
  return `${STATES[state] ?? 'it waits'}${who}`;
}
