import type { CommandContext } from '../../../core/cli/index.ts';
import type { Finding } from '../questions/verify.ts';

type Terminal = CommandContext['terminal'];

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const;

/** Findings, each with its mend below. */
export function findingLines(findings: readonly Finding[], { paint }: Terminal): string[] {
  return findings.flatMap(({ state, text, mend }) => [
    `${paint(COLOURS[state], state.padEnd(5))}${text}`,
    ...(mend === undefined ? [] : [`     ${paint('dim', mend)}`]),
  ]);
}

/**
 * Columns beneath their names; numbers to the right.
 *
 * @param widest characters of a cell, where more are cut
 */
export function tableLines(
  names: readonly string[],
  rows: readonly (readonly string[])[],
  { paint }: Terminal,
  widest = 80,
): string[] {
  const cut = (text: string) => {
    const line = text.replace(/\s+/g, ' ');
    return line.length > widest ? `${line.slice(0, widest - 1)}…` : line;
  };
  const cells = rows.map((row) => row.map(cut));
  const widths = names.map((name, at) =>
    cells.reduce((width, row) => Math.max(width, row[at]?.length ?? 0), name.length),
  );
  const numeric = names.map(
    (_, at) => cells.length > 0 && cells.every((row) => /^-?[\d.]+$/.test(row[at] ?? '')),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, at) => (numeric[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd();
  return [paint('bold', line(names)), ...cells.map(line)];
}

/** Exit code of findings. */
export function codeOf(findings: readonly Finding[]): number {
  return findings.some(({ state }) => state === 'fail') ? 1 : 0;
}
