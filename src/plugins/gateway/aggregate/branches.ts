import { logOwnFault } from '../calls/call.ts';
import type { Exchange } from '../exchange.ts';
import type { AuthenticatedKey } from '../keys/caller.ts';
import type { AggregateServices } from './aggregate-request.ts';
import { Branch, type BranchOptions } from './branch.ts';
import { aggregated, type Selection } from './selection.ts';
import { type Missing, whyUnusable } from './unavailable.ts';

/** The request that goes to several servers. */
interface BranchedRequest extends Pick<BranchOptions, 'legs' | 'session' | 'deadlineMs' | 'deadline'> {
  readonly gateway: AggregateServices;
  readonly exchange: Exchange;
  readonly key: AuthenticatedKey;
  readonly selection: Selection;
}

/**
 * The servers that a call goes to.
 *
 * @param allowed routes that the decision let it reach
 * @returns those of the selected ones that can be asked; the others are missing, with the reason
 */
export function branchesTo(
  { gateway, exchange, key, selection, session, legs, deadlineMs, deadline }: BranchedRequest,
  allowed: readonly string[],
): { branches: readonly Branch[]; missing: readonly Missing[] } {
  const { headers } = exchange;
  const isStream = exchange.method === 'GET'; // it lasts: who is down now may be back while it is open
  const branches: Branch[] = [];
  const missing: Missing[] = [];
  for (const route of selection.routes) {
    if (!allowed.includes(route.name)) continue;
    const down = isStream ? undefined : gateway.prober.whyDown(route.name);
    const reason =
      whyUnusable(route, key) ?? (down === undefined ? undefined : `is down: its upstream ${down}`);
    if (reason === undefined) {
      branches.push(
        new Branch({
          route: aggregated(route.forCaller?.(headers.authorization) ?? route),
          headers,
          agent: gateway.agent,
          caller: `${key.presented}\n${headers.authorization ?? ''}`,
          key: key.id,
          legs,
          session,
          deadlineMs,
          deadline,
          ended: (outcome, method) => gateway.prober.callEnded(route.name, outcome, method),
          failed: (cause) => logOwnFault(gateway, exchange, cause),
        }),
      );
    } else missing.push({ server: route.name, reason });
  }
  return { branches, missing };
}
