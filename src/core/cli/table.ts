import { plainText } from './log-view/values.ts';
import type { Terminal } from './terminal.ts';
import { wrapped } from './wrapped.ts';

const GAP = 2;
const INDENT = 4;

/**
 * Rows in columns. On a terminal that is too narrow for them, the last cells of each row stand below it; what no person
 * watches has a line a row, however long, so that other programs find all of one there.
 *
 * @param rows the first is the head
 * @returns the lines of each row
 */
export function table(
  rows: readonly (readonly string[])[],
  { interactive, columns }: Pick<Terminal, 'interactive' | 'columns'>,
): string[][] {
  const cells = rows.map((row) => row.map(plainText));
  const widths = (cells[0] ?? []).map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)));
  let beside = widths.length;
  const width = () => widths.slice(0, beside).reduce((sum, one) => sum + one + GAP, -GAP);
  while (interactive && beside > 1 && width() > columns) beside -= 1;
  return cells.map((row) => {
    const line = row.slice(0, beside).map((cell, at) => cell.padEnd(widths[at] ?? 0));
    const below = row.slice(beside).filter((cell) => cell !== '');
    const text = wrapped(below.join('  '), columns - INDENT);
    return [line.join(' '.repeat(GAP)).trimEnd(), ...text.map((one) => ' '.repeat(INDENT) + one.trim())];
  });
}
