import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import test from 'ava';
import { tempDir } from '../../support/temp.ts';

const root = new URL('../../../', import.meta.url);

/** The guide's code, importing this checkout in place of the installed package. */
function exampleOfGuide(): string {
  const guide = readFileSync(new URL('docs/testing-machines.md', root), 'utf8');
  const code = /^```ts\n(.*?)^```$/ms.exec(guide)?.[1] ?? '';
  return code
    .replace("'holdfast/testing'", `'${new URL('src/core/testing/index.ts', root).href}'`)
    .replace("'xstate'", `'${import.meta.resolve('xstate')}'`);
}

test('[C3] the example of docs/testing-machines.md runs', async (t) => {
  const file = join(tempDir(t), 'guide.ts');
  writeFileSync(file, exampleOfGuide());
  await t.notThrowsAsync(import(pathToFileURL(file).href));
});

test('[C3] the example of docs/testing-machines.md fails when the machine does otherwise', async (t) => {
  const file = join(tempDir(t), 'guide.ts');
  writeFileSync(file, exampleOfGuide().replace("after: { close: 'closed' }", "after: { close: 'open' }"));
  await t.throwsAsync(import(pathToFileURL(file).href), { message: /expected "closed"\n {4}got {6}"open"/ });
});
