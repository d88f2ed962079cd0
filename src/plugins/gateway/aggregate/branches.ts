import { logOwnFault } from '../calls/call.ts';
import type { AggregateCall } from './aggregate-call.ts';
import { Branch } from './branch.ts';
import { aggregated } from './selection.ts';
import { type Missing, whyUnusable } from './unavailable.ts';

/**
 * The servers that a call goes to.
 *
 * @param allowed routes that the decision let it reach
 * @returns those of the selected ones that can be asked; the others are missing, with the reason
 */
export function branchesTo(
  { gateway, exchange, key, selection, session, legs, deadlineMs, deadline }: AggregateCall,
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
