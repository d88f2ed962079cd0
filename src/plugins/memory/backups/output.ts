import type { Terminal } from '../../../core/host/terminal.ts';
import { plainText, table } from '../../../core/host/terminal.ts';

type Answer = Record<string, unknown>;
interface Row {
  readonly kind: string;
  readonly name: string;
  readonly at: string;
  readonly size: number;
  readonly recorded: boolean;
  readonly count?: number;
}
interface Status {
  readonly state: string;
  readonly lastGood?: Omit<Row, 'kind' | 'recorded'>;
  readonly lastDue: string;
  readonly kept: number;
  readonly stale: boolean;
  readonly findings: readonly string[];
  readonly fault?: string;
}

const second = (time: string): string => time.slice(0, 19).concat('Z');
const list = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** Bytes for people: three figures are enough. */
function sizeText(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB'];
  const step = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const value = bytes / 1_000 ** step;
  return `${value < 10 && step > 0 ? value.toFixed(1) : Math.round(value)} ${units[step]}`;
}

export function snapshotLines(answer: Answer): string[] {
  const { name, size, count, seeds, samples, deleted } = answer;
  const known =
    count === undefined
      ? 'what it holds was not recorded: no instance runs here'
      : `${count} points, ${list(seeds).length} seeds and ${list(samples).length} samples recorded`;
  const gone = list(deleted);
  return [
    plainText(`${name} (${sizeText(Number(size))}): ${known}`),
    ...(gone.length > 0 ? [plainText(`pruned ${gone.join(', ')}`)] : []),
  ];
}

export function listLines({ backups, collection }: Answer, terminal: Terminal): string[] {
  const rows = backups as readonly Row[];
  if (rows.length === 0)
    return [plainText(`There is no backup of ${collection} yet: holdfast backup snapshot`)];
  const cells = rows.map(({ kind, at, size, count, name }) => [
    kind,
    second(at),
    sizeText(size),
    String(count ?? '-'),
    name,
  ]);
  return table([['KIND', 'MADE', 'SIZE', 'POINTS', 'NAME'], ...cells], terminal).flat();
}

export function pruneLines({ dryRun, deleted }: Answer): string[] {
  const names = Object.values(deleted as Record<string, unknown>).flatMap(list);
  if (names.length === 0) return ['Nothing is beyond the retention.'];
  return names.map((name) => plainText(`${dryRun === true ? 'would delete' : 'deleted'} ${name}`));
}

export function seedLines({ seeds, collection, count }: Answer): string[] {
  return [plainText(`${list(seeds).length} seeds are in ${collection}, which holds ${count} points`)];
}

export function statusLines(answer: Answer): string[] {
  const { seeds, ...kinds } = answer;
  return [
    ...Object.entries(kinds).flatMap(([kind, value]) => kindLines(kind, value as Status)),
    `seeds     ${seeds === 0 ? 'none: holdfast backup seed' : seeds}`,
  ].map(plainText);
}

function kindLines(
  kind: string,
  { lastGood, lastDue, kept, stale, fault, state, findings }: Status,
): string[] {
  const newest = lastGood
    ? `${lastGood.name}, ${second(lastGood.at)}, ${sizeText(lastGood.size)}, ${kept} kept`
    : 'no good one yet';
  const wrong = [...(stale ? ['stale'] : []), ...(fault === undefined ? [] : [fault]), ...findings];
  return [
    `${kind.padEnd(9)} ${newest}`,
    `          ${state}; was due ${second(lastDue)}${wrong.length > 0 ? `; ${wrong.join('; ')}` : ''}`,
  ];
}
