import { numberOf } from '../../../src/plugins/cluster/leases/ledger.ts';
import type { Stroke } from './pump-plugin.ts';

/**
 * What is wrong with the journal of a pump that some hosts work in turn:
 * - A stroke begins only by the newest token that was seen. One that began in time may end late only if it took longer than
 *   the margin of the lease (its process stood still in the middle): no lease can prevent that, only a device that compares tokens.
 * - A stroke has one id, whoever tries it again, and its number never goes back: its end was recorded before the next began.
 * - No stroke is left out.
 *
 * @param leaseMs of the singleton
 */
export function journalViolations(journal: readonly Stroke[], leaseMs: number): string[] {
  const found: string[] = [];
  const marginMs = leaseMs * 0.1 + 200;
  const idOf = new Map<number, string>();
  const begun = new Map<string, bigint>();
  let newest: Stroke | undefined;
  let last = 0;
  for (const line of journal.toSorted(byTime)) {
    const { id, stroke, token, phase, at, host } = line;
    const run = `${id} ${token} ${host}`;
    const isOld = newest !== undefined && numberOf(token) < numberOf(newest.token);
    const behind = `${text(line)}, behind ${newest && text(newest)}`;
    if (phase === 'begun') {
      if (isOld) found.push(`an old token: ${behind}`);
      if (stroke < last) found.push(`stroke ${stroke} behind stroke ${last}: ${text(line)}`);
      if (stroke > last + 1) found.push(`no stroke between ${last} and ${stroke}: ${text(line)}`);
      last = Math.max(last, stroke);
      begun.set(run, BigInt(at));
    } else {
      const from = begun.get(run);
      const tookMs = from === undefined ? 0 : Number(BigInt(at) - from) / 1e6;
      if (from === undefined) found.push(`it ended and never began: ${text(line)}`);
      else if (isOld && tookMs < marginMs) found.push(`two holders at once: ${behind}`);
    }
    const known = idOf.get(stroke) ?? id;
    if (known !== id) found.push(`stroke ${stroke} has two ids, ${known} and ${id}`);
    idOf.set(stroke, known);
    if (!isOld) newest = line;
  }
  const ids = new Set(idOf.values());
  if (ids.size !== idOf.size) found.push(`${idOf.size} strokes have ${ids.size} ids`);
  return found;
}

function byTime(a: Stroke, b: Stroke): number {
  return Number(BigInt(a.at) - BigInt(b.at));
}

function text({ host, token, id, stroke, phase, at }: Stroke): string {
  return `stroke ${stroke} (${id}) ${phase} by ${host} with ${numberOf(token)} at ${Number(BigInt(at) / 1_000n) / 1_000} ms`;
}
