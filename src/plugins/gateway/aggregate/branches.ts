import { logOwnFault } from '../calls/failed.ts';
import type { AggregateCallParts } from './aggregate-call-parts.ts';
import { whyUnusable } from './answers.ts';
import { Branch } from './branch.ts';
import type { Missing } from './lists.ts';
import { aggregated } from './selection.ts';

type Parts = Pick<
  AggregateCallParts,
  'gateway' | 'exchange' | 'caller' | 'selection' | 'session' | 'legs' | 'deadlineMs'
>;

/**
 * The servers that a call goes to.
 *
 * @param allowed routes that the decision let it reach
 * @returns those of the selected ones that can be asked; the others are missing, with the reason
 */
export function branchesTo(
  { gateway, exchange, caller, selection, session, legs, deadlineMs }: Parts,
  allowed: readonly string[],
): { branches: readonly Branch[]; missing: readonly Missing[] } {
  const { headers } = exchange;
  const branches: Branch[] = [];
  const missing: Missing[] = [];
  for (const route of selection.routes) {
    if (!allowed.includes(route.name)) continue;
    const reason = whyUnusable(route, caller);
    if (reason === undefined) {
      branches.push(
        new Branch({
          route: aggregated(route),
          headers,
          agent: gateway.agent,
          caller: `${caller.presented}\n${headers.authorization ?? ''}`,
          legs,
          session,
          deadlineMs,
          failed: (cause) => logOwnFault(gateway.services.logger, exchange, cause),
        }),
      );
    } else missing.push({ server: route.name, reason });
  }
  return { branches, missing };
}
