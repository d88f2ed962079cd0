import { setTimeout as sleep } from 'node:timers/promises';
import { addressSets } from '../../config/networks.ts';
import { heldPrefixes } from '../../host/set-tools.ts';
import type { RouterTarget } from '../target.ts';
import type { CheckResult } from './checks.ts';

/** How the check is called in results and output. */
const SETS_CHECK = '--check-sets';
/** Sets follow the addresses within a minute. */
const LOOK_MS = 1_000;

/**
 * The built-in check of a change: every network's prefixes are in its address set, so that per-network policy covers both
 * sides of each flow. It waits for the sets as long as the window allows. Where they cannot be read it fails and says why.
 *
 * @param cutOff aborted when the window is nearly over
 * @param show gets what is missing, each time that it changes
 */
export async function checkSets(
  target: RouterTarget,
  cutOff: AbortSignal,
  show: (line: string) => void,
): Promise<CheckResult> {
  const began = performance.now();
  const result = (outcome: CheckResult['outcome'], exit: string): CheckResult => {
    return { command: SETS_CHECK, outcome, exit, ms: Math.round(performance.now() - began) };
  };
  let shown = '';
  try {
    for (;;) {
      const missing = await missingPrefixes(target, cutOff);
      if (typeof missing === 'string') {
        show(`it is unknown what the address sets hold: ${missing}`);
        return result('failed', 'unknown');
      }
      if (missing.length === 0) return result('passed', '0');
      const text = `not yet in its set: ${missing.join(', ')}`;
      if (text !== shown) show(text);
      shown = text;
      await sleep(LOOK_MS, undefined, { signal: cutOff });
    }
  } catch (error) {
    if (cutOff.aborted) return result('cut off', 'the sets did not follow in time');
    throw error;
  }
}

/** @returns what no set holds that should, or why nobody can say */
async function missingPrefixes(target: RouterTarget, signal: AbortSignal): Promise<string[] | string> {
  const reading = await target.filledSets(signal);
  if (reading.state === 'assumed') return reading.reason;
  const config = await target.active(signal);
  const content = Object.fromEntries(reading.sets);
  return addressSets(config, await target.addresses(config, signal)).flatMap(({ name, intf, prefixes }) => {
    const held = heldPrefixes({ [name]: prefixes }, content)[name] ?? [];
    return prefixes
      .filter((prefix) => !held.includes(prefix))
      .map((prefix) => `${prefix} (${intf}, ${name})`);
  });
}
