// The result of a run in docs/testing.md: a row for each area, and a row for each change that nobody noticed. Areas that
// were not run keep their rows, so that a result can be gathered area by area.
import { readFileSync, writeFileSync } from 'node:fs';
import { isTried, type Result, shareNoticed } from './summary.ts';

const BEGIN = '<!-- written by npm run mutants -- --record -->';
const END = '<!-- end of what npm run mutants writes -->';
const HEADS = {
  areas:
    '| area | changes of the list | noticed | changes by rule | noticed | share |\n|---|---|---|---|---|---|',
  left: '| area | change that no test notices | why |\n|---|---|---|',
};

/** A line number would be another after every edit above it. */
const withoutLine = (breaks: string): string => breaks.replace(/^(\S+\.ts):\d+ {2}/, '$1: ');
const cell = (text: string): string => text.replace(/\|/g, '\\|').replace(/\s+/g, ' ');
const row = (cells: readonly (string | number)[]): string =>
  `| ${cells.map((one) => cell(`${one}`)).join(' | ')} |`;

function areaRow(area: string, results: readonly Result[]): string {
  const counts = (['written', 'automatic'] as const).flatMap((kind) => {
    const tried = results.filter((result) => result.kind === kind && isTried(result));
    return [tried.length, tried.filter(({ state }) => state === 'killed').length];
  });
  return row([area, ...counts, shareNoticed(results)]);
}

function leftRows(results: readonly Result[]): string[] {
  return results
    .filter(({ state }) => state !== 'killed')
    .map(({ area, breaks, state, why }) =>
      row([area, withoutLine(breaks), state === 'survived' ? 'no test of it yet' : `${state}: ${why}`]),
    );
}

/** Rows that are there and belong to other areas, and the new ones, in the order of the areas. */
function merged(before: string, head: string, fresh: readonly string[], areas: ReadonlySet<string>): string {
  const [, after = ''] = before.split(head);
  const [table = ''] = after.trimStart().split('\n\n');
  const areaOf = (line: string): string => line.split('|')[1]?.trim() ?? '';
  const kept = table.split('\n').filter((line) => line.startsWith('|') && !areas.has(areaOf(line)));
  return [head, ...[...kept, ...fresh].sort((a, b) => areaOf(a).localeCompare(areaOf(b)))].join('\n');
}

/** @param page the page that holds the two tables between its two comments */
export function record(page: string, results: readonly Result[]): void {
  const text = readFileSync(page, 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${page} has no place for the result: "${BEGIN}" … "${END}"`);
  const before = text.slice(begin, end);
  const byArea = Map.groupBy(results, ({ area }) => area);
  const areas = new Set(byArea.keys());
  const rows = [...byArea].map(([area, these]) => areaRow(area, these));
  const tables = [
    merged(before, HEADS.areas, rows, areas),
    merged(before, HEADS.left, leftRows(results), areas),
  ];
  writeFileSync(page, `${text.slice(0, begin)}${[BEGIN, ...tables].join('\n\n')}\n\n${text.slice(end)}`);
}
