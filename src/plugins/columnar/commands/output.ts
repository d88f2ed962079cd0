import { HostError } from '../../../core/host/errors/host-error.ts';
import type { CommandContext } from '../../../core/host/plugin/command.ts';
import { inertText, wrapped } from '../../../core/host/terminal.ts';
import type { Finding } from '../questions/findings.ts';

type Terminal = CommandContext['terminal'];

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red', unknown: 'yellow' } as const;
/** Columns are not made narrower than this to fit a table; if that is not enough, each row is shown as a list. */
const NARROWEST = 16;
const GAP = '  ';

/** Findings, each with its remedy below, no line longer than the terminal is wide. */
export function findingLines(findings: readonly Finding[], { paint, columns }: Terminal): string[] {
  const width = Math.max(4, ...findings.map(({ state }) => state.length)) + 1;
  const indent = ' '.repeat(width);
  return findings.flatMap(({ state, text, remedy }) => {
    const [first = '', ...rest] = wrapped(inert(text), columns - width);
    return [
      `${paint(COLOURS[state], state.padEnd(width))}${first}`,
      ...rest.map((line) => indent + line),
      ...wrapped(inert(remedy ?? ''), columns - width).map((line) => indent + paint('dim', line)),
    ];
  });
}

/**
 * Columns beneath their names, numbers to the right, long cells cut so that all fits the terminal's width; where that
 * would leave too little of them, and for a single row, each row as lines of names and whole values. Output to a file
 * or a pipe is never cut, so that other programs get all of it; a single value is printed unchanged, but for signs that a
 * terminal obeys, which are shown as escapes.
 */
export function tableLines(
  given: readonly string[],
  rows: readonly (readonly string[])[],
  terminal: Terminal,
): string[] {
  const names = given.map(inert);
  const [[only = ''] = []] = rows;
  if (!terminal.interactive && rows.length === 1 && names.length === 1) {
    return [terminal.paint('bold', names[0] ?? ''), inert(only)];
  }
  const cells = rows.map((row) => row.map(terminal.interactive ? oneLine : escaped));
  const natural = names.map((name, at) =>
    cells.reduce((width, row) => Math.max(width, row[at]?.length ?? 0), Math.max(1, name.length)),
  );
  if (!terminal.interactive) return gridLines(names, cells, natural, terminal);
  const widths = fitting(natural, terminal.columns);
  const isCut = widths?.some((width, at) => width < (natural[at] ?? 0));
  if (!widths || (isCut && rows.length === 1)) return recordLines(names, cells, terminal);
  return gridLines(names, cells, widths, terminal);
}

/** Data of a producer, which may have written anything. */
const inert = (text: string): string => inertText(text, false);

const oneLine = (cell: string): string => inert(cell.replace(/\s+/g, ' '));

/** Keeps a row on one line; the original text can be restored from it. */
const escaped = (cell: string): string =>
  inert(cell.replace(/[\\\n\r\t]/g, (sign) => ({ '\n': '\\n', '\r': '\\r', '\t': '\\t' })[sign] ?? '\\\\'));

/** @returns the widths, the widest ones made narrower until all fit; undefined when they can't */
function fitting(natural: readonly number[], columns: number): number[] | undefined {
  const widths = [...natural];
  let over = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1)) - columns;
  while (over > 0) {
    const widest = Math.max(...widths);
    if (widest <= NARROWEST) return undefined;
    const second = Math.max(NARROWEST, ...widths.filter((width) => width < widest));
    const less = Math.max(1, Math.min(over, widest - second));
    widths[widths.indexOf(widest)] = widest - less;
    over -= less;
  }
  return widths;
}

function gridLines(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  widths: readonly number[],
  { paint }: Terminal,
): string[] {
  const numeric = names.map(
    (_, at) => cells.length > 0 && cells.every((row) => /^-?[\d.]+$/.test(row[at] ?? '')),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, at) => {
        const width = widths[at] ?? 0;
        const cut = cell.length > width ? `${cell.slice(0, width - 1)}…` : cell;
        return numeric[at] ? cut.padStart(width) : cut.padEnd(width);
      })
      .join(GAP)
      .trimEnd();
  return [paint('bold', line(names)), ...cells.map(line)];
}

function recordLines(
  names: readonly string[],
  cells: readonly (readonly string[])[],
  { paint, columns }: Terminal,
): string[] {
  const width = Math.max(...names.map((name) => name.length));
  return cells.flatMap((row, at) => [
    paint('bold', `row ${at + 1}`),
    ...names.flatMap((name, column) => {
      const [first = '', ...rest] = wrapped(row[column] ?? '', columns - width - GAP.length);
      return [
        `${name.padEnd(width)}${GAP}${first}`.trimEnd(),
        ...rest.map((line) => `${' '.repeat(width)}${GAP}${line}`),
      ];
    }),
  ]);
}

/** Exit code of findings. */
export function codeOf(findings: readonly Finding[]): number {
  return findings.some(({ state }) => state === 'fail') ? 1 : 0;
}

/** @throws HF_CLI_USAGE it is no whole number of that range */
export function wholeNumber(
  value: unknown,
  flag: string,
  least: number,
  most: number,
  command: string,
): number {
  const number = Number(value);
  if (Number.isInteger(number) && number >= least && number <= most) return number;
  const reason = `${flag} takes a whole number from ${least} to ${most}.`;
  throw new HostError('HF_CLI_USAGE', { reason, command });
}
