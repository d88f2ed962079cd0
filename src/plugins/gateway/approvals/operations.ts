/** What a person sees of calls that wait, and decides: the operations of `gateway approvals`, `approve` and `deny`. */
import { z } from 'zod';
import type { HttpSurface } from '../../../core/host/http/contract.ts';
import { serveOperation } from '../../../core/host/operations/serve.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { GatewayError } from '../errors.ts';
import { approvalActor } from './actor.ts';
import type { Approvals } from './approvals.ts';
import type { ApprovalsElsewhere, Decision, OthersApprovals } from './other-hosts.ts';
import { type ApprovalView, decisionSchema, stateText, viewOf } from './view.ts';

export const APPROVALS_PATH = '/gateway/approvals';
export const DECIDE_PATH = '/gateway/approvals/decide';

const nothing = z.strictObject({});

/** The requests of this host, and those of the others where there are any. */
export interface ApprovalServices {
  readonly services: Pick<Services, 'actors' | 'clock'>;
  readonly approvals: Approvals;
  readonly approvalsElsewhere?: ApprovalsElsewhere | undefined;
}

/** Serves both on the control socket. */
export function serveApprovalOperations(surface: HttpSurface, gateway: ApprovalServices): void {
  serveOperation(surface, APPROVALS_PATH, nothing, async () => {
    const { approvals, unanswered } = (await gateway.approvalsElsewhere?.list()) ?? NO_OTHERS;
    const views = [...ownViews(gateway.approvals), ...approvals];
    return { approvals: views.sort((one, other) => (one.askedAt < other.askedAt ? 1 : -1)), unanswered };
  });
  serveOperation(surface, DECIDE_PATH, decisionSchema, (wanted, { correlation }) =>
    decide(gateway, wanted, correlation),
  );
}

const NO_OTHERS: OthersApprovals = { approvals: [], unanswered: [] };

/** What was asked on this host. */
export function ownViews(approvals: Approvals): ApprovalView[] {
  return approvals.places().flatMap((place) => viewOf(place, approvals) ?? []);
}

/** @returns the request of a call that was denied on this host, while the denial stands */
export function deniedView(approvals: Approvals, digest: string): ApprovalView | undefined {
  const place = approvals.denied(digest);
  return place && viewOf(place, approvals);
}

/** @returns a request, on whichever host it is @throws HF_GATEWAY_APPROVAL_UNKNOWN, HF_GATEWAY_APPROVAL_UNANSWERED */
export async function findView(
  { approvals, approvalsElsewhere }: ApprovalServices,
  id: string,
): Promise<ApprovalView> {
  const place = approvals.find(id);
  const view = place ? viewOf(place, approvals) : await approvalsElsewhere?.find(id);
  if (!view) throw new GatewayError('HF_GATEWAY_APPROVAL_UNKNOWN', { id });
  return view;
}

/**
 * Decides a request, durably, on the host that has it.
 *
 * @throws HF_GATEWAY_APPROVAL_UNKNOWN, HF_GATEWAY_APPROVAL_UNANSWERED, HF_GATEWAY_APPROVAL_DECIDED
 */
export function decide(
  gateway: ApprovalServices,
  decision: Decision,
  correlation?: string,
): Promise<ApprovalView> {
  const { approvals, approvalsElsewhere } = gateway;
  const isElsewhere = approvalsElsewhere !== undefined && !approvals.find(decision.id);
  return isElsewhere ? approvalsElsewhere.decide(decision) : decideHere(gateway, decision, { correlation });
}

/** Where a decision comes from. */
interface DecisionOrigin {
  readonly correlation?: string | undefined;
  /** The other host on which the person is. */
  readonly from?: string;
}

/** The same of a request of this host. */
export async function decideHere(
  { services: { actors, clock }, approvals }: Pick<ApprovalServices, 'services' | 'approvals'>,
  { id, ...verdict }: Decision,
  { correlation, from: host }: DecisionOrigin,
): Promise<ApprovalView> {
  const place = approvals.find(id);
  if (!place) throw new GatewayError('HF_GATEWAY_APPROVAL_UNKNOWN', { id });
  const origin = host === undefined ? {} : { from: host };
  const event = { type: 'DECIDED', at: clock.now(), id, ...verdict, ...origin } as const;
  const { from, to } = await actors.send(approvalActor, place.key, event, { correlation }).durable();
  const now = approvals.find(id);
  const view = now && viewOf(now, approvals);
  if (!view) throw new GatewayError('HF_GATEWAY_APPROVAL_UNKNOWN', { id });
  if (from !== 'waiting' || to.value === 'waiting') {
    throw new GatewayError('HF_GATEWAY_APPROVAL_DECIDED', { id, state: stateText(view) });
  }
  return view;
}
