// No export that nobody imports, part of `npm run lint`: of every constant, function and class that a file of src
// exports, another file must say the name. Types may stand alone: declarations need the names of their parts.
import { fileURLToPath } from 'node:url';
import { readSource, sourceFiles } from './source.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

/** What other packages import (`exports` of package.json): there an export is for whoever wants it. */
const PUBLIC = /^src\/(?:index|core\/host\/testing\/index|plugins\/[^/]+\/index)\.ts$/;
const EXPORT = /^export (?:async )?(?:abstract )?(?:const|let|function\*?|class) (\w+)/gm;

const files = ['src', 'test', 'bench', 'scripts'].flatMap((folder) => sourceFiles(root, folder));
/** The files that say a word. */
const saidBy = new Map();
const exported = [];
for (const file of files) {
  const source = readSource(root, file);
  for (const word of new Set(source.match(/\w+/g))) saidBy.set(word, (saidBy.get(word) ?? 0) + 1);
  if (!file.startsWith('src/') || PUBLIC.test(file)) continue;
  for (const [, name] of source.matchAll(EXPORT)) exported.push({ file, name });
}
const unused = exported.filter(({ name }) => saidBy.get(name) === 1);
for (const { file, name } of unused) console.error(`${file} exports ${name}, which no other file names`);
if (unused.length > 0) process.exitCode = 1;
console.log(
  `exports: ${unused.length === 0 ? 'each is used elsewhere' : `${unused.length} that nobody uses`}`,
);
