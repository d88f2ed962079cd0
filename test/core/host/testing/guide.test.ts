import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import test from 'ava';
import { tempDir } from '../../../support/temp.ts';

const root = new URL('../../../../', import.meta.url);

const guide = readFileSync(new URL('docs/testing-machines.md', root), 'utf8');

/** One of the guide's examples, importing this checkout in place of the installed package. */
function exampleOfGuide(index = 0): string {
  const code = [...guide.matchAll(/^```ts\n(.*?)^```$/gms)][index]?.[1] ?? '';
  return code
    .replace("'holdfast/testing'", `'${new URL('src/core/host/testing/index.ts', root).href}'`)
    .replace("'holdfast/machines'", `'${new URL('src/machines/effect.ts', root).href}'`);
}

test('the example of docs/testing-machines.md runs', async (t) => {
  const file = join(tempDir(t), 'guide.ts');
  writeFileSync(file, exampleOfGuide());
  await t.notThrowsAsync(import(pathToFileURL(file).href));
});

test('[C4] its example of a log of the past runs', async (t) => {
  const file = join(tempDir(t), 'guide.ts');
  writeFileSync(file, exampleOfGuide(1));
  await t.notThrowsAsync(import(pathToFileURL(file).href));
});

test('the example of docs/testing-machines.md fails when the machine does otherwise', async (t) => {
  const file = join(tempDir(t), 'guide.ts');
  writeFileSync(file, exampleOfGuide().replace("after: { close: 'closed' }", "after: { close: 'open' }"));
  await t.throwsAsync(import(pathToFileURL(file).href), { message: /expected "closed"\n {4}got {6}"open"/ });
});
