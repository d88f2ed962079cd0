import { stripVTControlCharacters, styleText } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import { inertText, plainText } from '../../../src/core/host/terminal.ts';
import { tableLines } from '../../../src/plugins/columnar/commands/output.ts';

const ESC = '\u001b';
const paint = (format: Parameters<typeof styleText>[0], text: string) =>
  styleText(format, text, { validateStream: false });

test('[C14] sequences in data are shown as escapes: none hides text, moves the cursor or sets a title', (t) => {
  for (const sequence of [
    '[8m',
    '[0m',
    '[30m',
    '[1;8m',
    '[38;5;0m',
    '[7m',
    '[2J',
    '[1A',
    ']0;title\u0007',
    '[m',
  ]) {
    const shown = inertText(`before${ESC}${sequence}after`);
    t.false(shown.includes(ESC), JSON.stringify(sequence));
    t.regex(shown, /^before\\u001b.*after$/);
  }
});

test('[C14] what the program paints stays painted', (t) => {
  for (const format of ['bold', 'dim', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan'] as const) {
    const painted = paint(format, 'text');
    t.is(inertText(painted), painted);
    t.false(inertText(painted, false).includes(ESC), 'data has no colour of its own');
  }
});

test('[C14] plain text has no sequence that Node knows as one', (t) => {
  const part = fc.constantFrom(
    ...[
      ESC,
      '\u009b',
      '[',
      ']',
      '(',
      '#',
      '?',
      ';',
      '0',
      '38',
      'm',
      'J',
      'a',
      '\u0007',
      '\u009c',
      '\\',
      ':',
      '/',
    ],
  );
  const expected = (text: string) =>
    stripVTControlCharacters(text).replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, ' ');
  fc.assert(
    fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
      t.is(plainText(parts.join('')), expected(parts.join('')));
    }),
    { numRuns: 2_000 },
  );
});

for (const interactive of [true, false]) {
  test(`[O1] a span name with ESC[8m hides nothing in a table ${interactive ? 'on a terminal' : 'in a pipe'}`, (t) => {
    const name = `login${ESC}[8m failed${ESC}[31m`;
    const terminal = { interactive, columns: 100, paint };
    for (const rows of [[[name]], [[name], ['other']]]) {
      const [, ...lines] = tableLines(['SpanName'], rows, terminal as Parameters<typeof tableLines>[2]);
      t.false(lines.join('').replaceAll(`${ESC}[1m`, '').replaceAll(`${ESC}[22m`, '').includes(ESC));
      t.true(lines.join('').includes('u001b[8m failed'));
    }
  });
}
