/** How applies and changes of a WAN end, as the events that their machines wait for. */
import type { NetworkConfig } from '../../core/contracts/router.ts';
import { type HoldfastError, isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { ErrorCode } from '../../core/kernel/errors/table.ts';
import type { LogEvent } from '../../core/kernel/log/record.ts';
import { rewrittenLegs } from './generated/generate.ts';
import { KernelRefusal } from './kernel/driver.ts';
import type { ReapplyPlan } from './reapply.ts';

/** What an apply reached, for those who listen to the channels. */
export interface Reapplied {
  readonly reapplied: string[];
  /** Legs whose file for the DHCP service was rewritten. */
  readonly rewritten?: string[];
  readonly apc?: true;
}

export function applied(
  ncid: string,
  fingerprint: string,
  plan: ReapplyPlan,
  before: NetworkConfig,
  after: NetworkConfig,
): LogEvent {
  return { type: 'APPLIED', ncid, fingerprint, ...reappliedBy(plan, before, after) };
}

export function reappliedBy(plan: ReapplyPlan, before: NetworkConfig, after: NetworkConfig): Reapplied {
  const rewritten = rewrittenLegs(plan, before, after);
  const apc = [...plan.removed, ...plan.applied].some(({ plugin }) => plugin === 'apc');
  return {
    reapplied: [...plan.interfaces],
    ...(rewritten.length > 0 && { rewritten }),
    ...(apc && { apc: true }),
  };
}

/** What the kernel or the daemons' files could not take, in words for the client. @throws anything else, as it is */
export function refusal(error: unknown): LogEvent {
  if (error instanceof KernelRefusal) return failed(error.message);
  if (isCoded(error, 'HF_ROUTER_GENERATE') || isCoded(error, 'HF_ROUTER_KERNEL'))
    return failed(error.what, error.code);
  throw error;
}

/** Nothing was written. */
export function unavailable({ what, code, status }: HoldfastError): LogEvent {
  return { type: 'APPLY_FAILED', errors: [what], code, status };
}

export function failed(reason: string, code: ErrorCode = 'HF_ROUTER_APPLY_FAILED'): LogEvent {
  return { type: 'APPLY_FAILED', errors: [reason], code, status: 500 };
}

export function refusedWan(reason: string): LogEvent {
  return { type: 'WAN_REFUSED', reason };
}
