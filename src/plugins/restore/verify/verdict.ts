import type { Report } from '../../../machines/restore/drill-shapes.ts';

type Facts = Omit<Report, 'ok' | 'verdict'>;

const SAYS = {
  record: 'recorded when it was made',
  copy: 'there when it was copied',
  live: 'in the live store',
} as const;

/**
 * Whether the restore is proven. What a record, or the copying, has fixed decides alone: the live store of today may be
 * another one by right. Where nobody has recorded anything, the live store is the only witness.
 */
export function verdictOf(facts: Facts): Pick<Report, 'ok' | 'verdict'> {
  const faults = [...faultsOf(facts)];
  const { restored, expected, seeds } = facts;
  if (faults.length > 0) return { ok: false, verdict: `${faults.join('; ')}.` };
  const points = `${restored.count} points, as ${SAYS[expected.from]}`;
  const planted = seeds.checked > 0 ? `, and ${seeds.checked} seeded memories unchanged` : '';
  return { ok: true, verdict: `${points}${planted}.` };
}

function* faultsOf({ expected, restored, seeds, differences, vectors }: Facts): Generator<string> {
  const { least, most, from } = expected;
  const wanted = least === most ? String(least) : `${least} to ${most}`;
  if (restored.count < least || restored.count > most) {
    yield `${restored.count} points instead of ${wanted}, as ${SAYS[from]}`;
  }
  if (seeds.missing.length > 0) yield `seeded memories are missing: ${seeds.missing.join(', ')}`;
  if (seeds.changed.length > 0) yield `seeded memories are not what they were: ${seeds.changed.join(', ')}`;
  if (vectors) yield `its vectors are ${vectors.restored} instead of ${vectors.live}`;
  if (from !== 'live') return;
  const { onlyLive, onlyRestored, changed } = differences;
  const total = onlyLive.total + onlyRestored.total + changed.total;
  if (total > 0) yield `${total} points differ from the live store, and nothing recorded what it held`;
}
