// The result of a run in docs/testing.md: a row for each area and kind of change, and a row for each change that no test
// notices. What was not run keeps its rows, so that a result can be gathered area by area.
import { readFileSync, writeFileSync } from 'node:fs';
import { isTried, type Result, shareNoticed } from './summary.ts';

const BEGIN = '<!-- written by npm run mutants -- --record -->';
const END = '<!-- end of what npm run mutants writes -->';
const SHARES = '| area, changes | tried | noticed | share |\n|---|---|---|---|';
const UNNOTICED = '| area, changes | what no test notices | why |\n|---|---|---|';

const groupOf = ({ area, kind }: Result): string =>
  `${area}, ${kind === 'written' ? 'of the list' : 'by rule'}`;
/** A line number would be another after every edit above it. */
const withoutLine = (breaks: string): string => breaks.replace(/^(\S+\.ts):\d+ {2}/, '$1: ');
const row = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replace(/\s+/g, ' ').replaceAll('|', '\\|')).join(' | ')} |`;

function shareRow(group: string, results: readonly Result[]): string {
  const tried = results.filter(isTried);
  const killed = tried.filter(({ state }) => state === 'killed');
  return row([group, String(tried.length), String(killed.length), shareNoticed(results)]);
}

function unnoticedRow(result: Result): string {
  const { breaks, state, why } = result;
  const reason = state === 'survived' ? 'a test of it is missing' : `${state}: ${why}`;
  return row([groupOf(result), withoutLine(breaks), reason]);
}

/** The rows of other groups that are there already, and the new ones, in the order of the groups. */
function merged(before: string, head: string, fresh: readonly string[], groups: ReadonlySet<string>): string {
  const group = (line: string): string => line.split('|')[1]?.trim() ?? '';
  const [, after = ''] = before.split(head);
  const lines = after.split('\n').slice(1);
  const end = lines.findIndex((line) => !line.startsWith('|'));
  const kept = lines.slice(0, Math.max(0, end)).filter((line) => !groups.has(group(line)));
  return [head, ...[...kept, ...fresh].sort((a, b) => group(a).localeCompare(group(b)))].join('\n');
}

/** @param page the page that holds the two tables between its two comments */
export function record(page: string, results: readonly Result[]): void {
  const text = readFileSync(page, 'utf8');
  const [begin, end] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`${page} has no place for the result: "${BEGIN}" … "${END}"`);
  const before = text.slice(begin, end);
  const byGroup = Map.groupBy(results, groupOf);
  const groups = new Set(byGroup.keys());
  const shares = [...byGroup].map(([group, these]) => shareRow(group, these));
  const unnoticed = results.filter(({ state }) => state !== 'killed').map(unnoticedRow);
  const tables = [merged(before, SHARES, shares, groups), merged(before, UNNOTICED, unnoticed, groups)];
  writeFileSync(page, `${text.slice(0, begin)}${[BEGIN, ...tables].join('\n\n')}\n\n${text.slice(end)}`);
}
