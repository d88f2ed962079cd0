import test from 'ava';
import { parseSize, sizeText } from '../../../src/core/host/size.ts';

for (const [bytes, text] of [
  [0, '0 B'],
  [999, '999 B'],
  [1_500, '1.5 KB'],
  [64 * 2 ** 20, '67.1 MB'],
  [120e9, '120 GB'],
  [5e15, '5000 TB'],
] as const)
  test(`${bytes} bytes are shown as ${text}`, (t) => {
    t.is(sizeText(bytes), text);
  });

test('a size is read with its unit, and nothing else is one', (t) => {
  t.deepEqual(['500MB', '2gb', '1GiB', '3KB'].map(parseSize), [500e6, 2e9, 2 ** 30, 3_000]);
  t.deepEqual(['500', 'MB', '1.5GB', '1TB', '-1MB', ''].map(parseSize), Array(6).fill(undefined));
});
