import test, { type ExecutionContext } from 'ava';
import { FullText } from '../../../src/plugins/memory/full-text.ts';

const WORDS = 36 ** 3;
const note = (number: number): string =>
  Array.from({ length: 5_000 }, (_, at) => ((at * 7_919 + number * 31) % WORDS).toString(36)).join(' ');
/** Beginnings that a hundred thousands of words have. */
const COSTLY = Array.from({ length: 32 }, (_, at) => `${(at + 1).toString(36).at(-1)}*`).join(' ');

async function filled(t: ExecutionContext, notes: number, searchMs?: number): Promise<FullText> {
  const texts = new FullText(searchMs);
  t.teardown(() => texts.close());
  await texts.putAll(Array.from({ length: notes }, (_, number) => [number, note(number)] as const));
  return texts;
}

test('[G1] the process goes on while notes are searched', async (t) => {
  const texts = await filled(t, 20);
  const order: string[] = [];
  setImmediate(() => order.push('something else'));
  t.is((await texts.search(COSTLY, 5)).length, 5);
  order.push('found');
  t.deepEqual(order, ['something else', 'found']);
});

test('[G1] a search that takes too long is ended with a coded error, and so are those behind it', async (t) => {
  const texts = await filled(t, 60, 20);
  const searches = [texts.search(COSTLY, 5), texts.search('zz9', 5)];
  for (const search of searches) await t.throwsAsync(search, { code: 'HF_MEMORY_SEARCH' });
  t.true(texts.hasEnded);
  await t.throwsAsync(texts.search('zz9', 5), { code: 'HF_MEMORY_SEARCH' });
});

test('[G1] a character that ends a text is no part of a word', async (t) => {
  const texts = await filled(t, 0);
  await texts.putAll([[7, 'the cellar key']]);
  t.deepEqual(
    (await texts.search('cellar\0key\0', 5)).map(({ id }) => id),
    [7],
  );
});

test('[G1] what was asked before an index is replaced is still answered', async (t) => {
  const texts = await filled(t, 5);
  const search = texts.search(COSTLY, 5);
  const finished = texts.finish();
  t.is((await search).length, 5);
  await finished;
  t.true(texts.hasEnded);
});
