import type { CheckContext, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { isObject } from '../../core/kernel/json.ts';

/** Whether the running instance holds its legs, for `holdfast doctor router`. */
export function legsCheck({ running }: CheckContext): CheckResult {
  const lookedAt = 'the legs of the running instance';
  const fact = running?.facts.reconciler;
  if (!isObject(fact) || !Array.isArray(fact.legs)) {
    const found = 'none runs that can be asked, so no address is held';
    return { state: 'warn', lookedAt, found, remedy: 'Start it with `holdfast start`.' };
  }
  const ill = fact.legs.filter(({ state }) => state !== 'whole');
  if (ill.length === 0) return { state: 'ok', lookedAt, found: `all ${fact.legs.length} have their address` };
  const found = ill
    .map(
      ({ intf, label, state, lastError }) =>
        `${label} (${intf}) ${state}${lastError ? `: ${lastError}` : ''}`,
    )
    .join('; ');
  const remedy =
    '`holdfast log tail` tells the story of each; router.api and router.transaction say why it may be so.';
  const isWaiting = ill.every(
    ({ state }) => state === 'waiting' || state === 'unread' || state === 'missing',
  );
  return { state: isWaiting ? 'warn' : 'fail', lookedAt, found, remedy };
}
