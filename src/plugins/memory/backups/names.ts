import type { ListedBackup } from '../../../machines/memory/backups-shapes.ts';

const TIME = /-(\d{4})-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)$/;

/**
 * When a backup was made, by its name (`memory-<numeric id>-<date>-<time>.snapshot`, UTC).
 *
 * @returns epoch milliseconds; undefined for a name that is not of our shape, whose file is nobody's to prune
 */
export function snapshotTime(collection: string, name: string): number | undefined {
  if (!name.startsWith(`${collection}-`) || !name.endsWith('.snapshot')) return undefined;
  const rest = name.slice(collection.length, -'.snapshot'.length);
  return /^-\d+-/.test(rest) ? timeIn(rest) : undefined;
}

/** The same of a volume copy, `memory-<date>-<time>.db`. */
export function copyTime(name: string): number | undefined {
  return /^memory-[\d-]+\.db$/.test(name) ? timeIn(name.slice(0, -'.db'.length)) : undefined;
}

export const copyName = (at: number): string =>
  `memory-${new Date(at).toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')}.db`;

/** Files of our shape, with their times. */
export function ofOurShape(
  files: readonly { readonly name: string; readonly size: number }[],
  timeOf: (name: string) => number | undefined,
): ListedBackup[] {
  return files.flatMap(({ name, size }) => {
    const at = timeOf(name);
    return at === undefined ? [] : [{ name, at, size }];
  });
}

function timeIn(text: string): number | undefined {
  const [, year, month, day, hour, minute, second] = TIME.exec(text) ?? [];
  if (second === undefined) return undefined;
  const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(at) ? undefined : at;
}
