// `npm run shape`: figures of the structure, those of version 0.1.0 beside today's. It judges nothing: the rules that
// must hold are those of `npm run lint`. `--json` prints them as data; a folder as argument counts another checkout; `--ways`
// also starts the product and counts the files that three requests pass.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { productNode } from './bootstrap.mjs';
import { forbiddenWordsIn } from './domain-words.mjs';
import { readSource, sourceFiles, strings } from './source.ts';

/** Version 0.1.0, counted by this script. */
const BEFORE = {
  'source files': 860,
  'lines of source': 71711,
  'lines of a file, median': 73,
  'files under 30 lines': 150,
  'files under 15 lines': 68,
  'files over 400 lines': 0,
  'index.ts files': 83,
  'imports through an index.ts': 823,
  'imports past an index.ts': 1047,
  'casts (as unknown as, as never)': 144,
  any: 0,
  'words of the domain in kernel and host': 238,
  'comments that begin with "Of …"': 123,
  'lines of README.md': 248,
  'lines of docs/architecture.md': 431,
  'lines of CHANGELOG.md': 345,
};

const WAYS_BEFORE = { 'tools/call': 79, 'config/set': 66, 'otlp batch': 40 };

const args = process.argv.slice(2);
const root = resolve(
  args.find((arg) => !arg.startsWith('--')) ?? fileURLToPath(new URL('..', import.meta.url)),
);

const files = sourceFiles(root, 'src');
const text = new Map(files.map((file) => [file, readSource(root, file)]));
const linesOf = (source) => source.split('\n').length - 1;
const sizes = [...text.values()].map(linesOf).sort((a, b) => a - b);
const count = (pattern) =>
  [...text.values()].reduce((sum, source) => sum + (source.match(pattern)?.length ?? 0), 0);
/** Whole lines of comment, where `any` is an English word. */
const COMMENT_LINE = /^\s*(?:\/\/|\/?\*).*$/gm;
const countInCode = (pattern) =>
  [...text.values()].reduce(
    (sum, source) => sum + (source.replace(COMMENT_LINE, '').match(pattern)?.length ?? 0),
    0,
  );
const linesOfFile = (path) => {
  try {
    return linesOf(readFileSync(join(root, path), 'utf8'));
  } catch {
    return 0;
  }
};

const figures = {
  'source files': sizes.length,
  'lines of source': sizes.reduce((sum, size) => sum + size, 0),
  'lines of a file, median': sizes[Math.floor(sizes.length / 2)],
  'files under 30 lines': sizes.filter((size) => size < 30).length,
  'files under 15 lines': sizes.filter((size) => size < 15).length,
  'files over 400 lines': sizes.filter((size) => size > 400).length,
  'index.ts files': files.filter((file) => file.endsWith('/index.ts')).length,
  ...entrances(),
  'casts (as unknown as, as never)': count(/\bas unknown as\b|\bas never\b/g),
  any: countInCode(/\bas any\b|: any\b|<any>/g),
  'words of the domain in kernel and host': wordsInCore(),
  'comments that begin with "Of …"': count(/(?:\/\*\*|\/\/|^\s*\*) Of /gm),
  'lines of README.md': linesOfFile('README.md'),
  'lines of docs/architecture.md': linesOfFile('docs/architecture.md'),
  'lines of CHANGELOG.md': linesOfFile('CHANGELOG.md'),
};

if (args.includes('--ways')) Object.assign(figures, ways());

if (args.includes('--json')) console.log(JSON.stringify(figures, null, 2));
else print();

function print() {
  const width = Math.max(...Object.keys(figures).map((name) => name.length));
  console.log(`${''.padEnd(width)}    0.1.0    today`);
  for (const [name, value] of Object.entries(figures)) {
    console.log(
      `${name.padEnd(width)} ${String(BEFORE[name] ?? '').padStart(8)} ${String(value).padStart(8)}`,
    );
  }
}

/** Files of src that run a function between a request and its outcome. */
function ways() {
  const script = fileURLToPath(new URL('shape/ways.mjs', import.meta.url));
  const { counts } = JSON.parse(
    execFileSync(productNode(), [script], { encoding: 'utf8', timeout: 120_000 }),
  );
  return Object.fromEntries(
    Object.entries(counts).map(([way, { files }]) => {
      BEFORE[`files on the way of ${way}`] = WAYS_BEFORE[way];
      return [`files on the way of ${way}`, files];
    }),
  );
}

/** Imports from outside a folder that has an `index.ts`: those that use it, and those that go past it. */
function entrances() {
  let through = 0;
  let past = 0;
  for (const file of files) {
    for (const { text: name, before } of strings(text.get(file))) {
      if (!name.startsWith('.') || !/(?:\bfrom|\bimport|\bimport\s*\()\s*$/.test(before)) continue;
      const target = posix.join(posix.dirname(file), name);
      const folder = posix.dirname(target);
      if (`${file}/`.startsWith(`${folder}/`) || !text.has(`${folder}/index.ts`)) continue;
      if (target === `${folder}/index.ts`) through += 1;
      else past += 1;
    }
  }
  return { 'imports through an index.ts': through, 'imports past an index.ts': past };
}

/** Kernel and host; in 0.1.0 all of core but the contracts, which were its folder `adapters`. */
function wordsInCore() {
  const core = files.filter(
    (file) => /^src\/core\//.test(file) && !/^src\/core\/(contracts|adapters)\//.test(file),
  );
  return core.reduce((sum, file) => sum + forbiddenWordsIn(file, text.get(file)).length, 0);
}
