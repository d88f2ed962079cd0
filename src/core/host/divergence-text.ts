import type { Divergence } from '../kernel/replay/verify.ts';
import type { Terminal } from './terminal.ts';
import { jsonLines, plainText, stateName, timestamp } from './terminal.ts';

/** Pairs of lines: what is longer than this is shown one after the other, its beginning. */
const MOST_COMPARED = 4_000_000;
const SAMPLE = 100;
/** Longer decisions are compared by their differing lines alone. */
const CONTEXT_LINES = 3;

/** A divergence as a failed test tells it: which record, what was expected, what came, and where to look. */
export function divergenceLines(
  { record, expected, got, hint }: Divergence,
  terminal: Pick<Terminal, 'paint'>,
): string[] {
  const { paint } = terminal;
  const { type, ...fields } = record.event;
  const row = (name: string, text: string) => `  ${name.padEnd(8)}${plainText(text)}`;
  return [
    paint(['bold', 'red'], `Record ${record.seq} is decided differently now.`),
    '',
    row('time', timestamp(record.at, 'ms')),
    row('actor', `${record.actor} (${record.machine}, version ${record.version})`),
    row('event', type),
    ...(Object.keys(fields).length > 0 ? jsonLines(fields, ' '.repeat(10)) : []),
    ...(record.from === undefined ? [] : [row('state', stateName(record.from))]),
    '',
    `  ${paint('green', '- expected, as recorded in the log')}   ${paint('red', '+ actual, as the machine decides now')}`,
    '',
    ...difference(jsonLines(expected, ''), jsonLines(got, '')).map(({ mark, text }) => {
      const line = `  ${mark} ${text}`;
      if (mark === ' ') return paint('dim', line);
      return paint(mark === '-' ? 'green' : 'red', line);
    }),
    '',
    `  ${paint('bold', 'Hint:')} ${plainText(hint)}.`,
  ];
}

interface Line {
  readonly mark: ' ' | '-' | '+' | '…';
  readonly text: string;
}

/** The lines of two texts, common ones once; long common stretches are left out. */
export function difference(expected: readonly string[], got: readonly string[]): Line[] {
  if (expected.length * got.length > MOST_COMPARED) return [...sample('-', expected), ...sample('+', got)];
  const lengths = commonLengths(expected, got);
  const lines: Line[] = [];
  let left = 0;
  let right = 0;
  while (left < expected.length || right < got.length) {
    const [before = '', after = ''] = [expected[left], got[right]];
    if (left < expected.length && right < got.length && before === after) {
      lines.push({ mark: ' ', text: before });
      left += 1;
      right += 1;
    } else if (
      left < expected.length &&
      (right >= got.length || at(lengths, left + 1, right) >= at(lengths, left, right + 1))
    ) {
      lines.push({ mark: '-', text: before });
      left += 1;
    } else {
      lines.push({ mark: '+', text: after });
      right += 1;
    }
  }
  return withoutLongStretches(lines);
}

function sample(mark: '-' | '+', text: readonly string[]): Line[] {
  const lines = text.slice(0, SAMPLE).map((line): Line => ({ mark, text: line }));
  const left = text.length - lines.length;
  return left > 0 ? [...lines, { mark: '…', text: `${left} more lines` }] : lines;
}

/** Length of the longest common subsequence of the rests behind each pair of places. */
function commonLengths(expected: readonly string[], got: readonly string[]): number[][] {
  const lengths = Array.from({ length: expected.length + 1 }, () =>
    new Array<number>(got.length + 1).fill(0),
  );
  for (let left = expected.length - 1; left >= 0; left -= 1) {
    const row = lengths[left] ?? [];
    for (let right = got.length - 1; right >= 0; right -= 1) {
      row[right] =
        expected[left] === got[right]
          ? at(lengths, left + 1, right + 1) + 1
          : Math.max(at(lengths, left + 1, right), at(lengths, left, right + 1));
    }
  }
  return lengths;
}

function at(lengths: readonly (readonly number[])[], left: number, right: number): number {
  return lengths[left]?.[right] ?? 0;
}

function withoutLongStretches(lines: readonly Line[]): Line[] {
  const near = lines.map((_, index) =>
    lines
      .slice(Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1)
      .some(({ mark }) => mark !== ' '),
  );
  return lines.flatMap((line, index): Line[] => {
    if (near[index]) return [line];
    return index > 0 && !near[index - 1] ? [] : [{ mark: '…', text: '' }];
  });
}
