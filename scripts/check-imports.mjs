// The import rules, part of `npm run lint`: the layers, the entrances of folders, one direction between the folders of a
// plugin, and contracts without functions. Biome's noRestrictedImports compares the text of a specifier, and `../x/index.ts` reads the same whether it
// stays in a plugin's folder or enters another plugin: the path has to be resolved first.
// A folder as argument checks another checkout.
import { posix, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSource, sourceFiles, strings } from './source.ts';

const root = resolve(process.argv[2] ?? fileURLToPath(new URL('..', import.meta.url)));

/** The layers, first match counts. `may` names folders besides the layer's own; `folder` captures that. */
const LAYERS = [
  { folder: /^(src\/machines)\//, may: [] },
  { folder: /^(src\/bus)\//, may: [] },
  { folder: /^(src\/core\/kernel)\//, may: ['src/bus'] },
  { folder: /^(src\/core\/contracts)\//, may: ['src/core/kernel', 'src/bus'] },
  { folder: /^(src\/core\/host)\//, may: ['src/core/contracts', 'src/core/kernel', 'src/bus'] },
  { folder: /^(src\/plugins\/[^/]+)\//, may: ['src/core', 'src/bus', 'src/machines'] },
  { folder: /^(src\/cli)\//, may: ['src/core', 'src/bus'] },
  { folder: /^(src)\//, may: [] }, // the composition root: anything of the product, nothing of test or bench
];

/** Files that are the only entrance of their folder; no other folder has an `index.ts`. */
const ENTRANCE = /^src\/(?:index|core\/host\/testing\/index|plugins\/[^/]+\/index)\.ts$/;

/** Contracts are declarations; plugins share code through core and machines. */
const CONTRACT = /^src\/core\/contracts\//;
/** They make names; the digest is that by which a store and its reader must agree; tools of all servers answer in one way. */
const CONTRACT_FUNCTIONS = new Set(['defineToken', 'defineContributionPoint', 'pointDigest', 'addTool']);
const EXPORTED_CODE =
  /^export (?:(?:async )?function\*?|(?:abstract )?class) (\w+)|^export const (\w+)[^=\n]*= (?:async )?\(.*=>/gm;

const IMPORT = /(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\(|\bnew\s+URL\s*\()\s*$/;

/** A folder inside a plugin. */
const PART = /^(src\/plugins\/[^/]+\/[^/]+)\//;
/** The folders of plugins, each with those of the same plugin that it imports from. */
const importsOf = new Map();

let failures = 0;
const files = sourceFiles(root, 'src');
const entrances = new Set(files.filter((file) => ENTRANCE.test(file)));
for (const file of files) {
  if (file.endsWith('/index.ts') && !ENTRANCE.test(file)) {
    fail(`${file} is an entrance to a folder: import the files of the folder themselves`);
  }
  if (CONTRACT.test(file)) {
    for (const [, declared, assigned] of readSource(root, file).matchAll(EXPORTED_CODE)) {
      const name = declared ?? assigned;
      if (!CONTRACT_FUNCTIONS.has(name))
        fail(`${file} exports ${name}: contracts have no functions or classes`);
    }
  }
  const layer = LAYERS.find(({ folder }) => folder.test(file));
  const allowed = [layer.folder.exec(file)[1], ...layer.may];
  for (const { text, before, line } of strings(readSource(root, file))) {
    if (!IMPORT.test(before)) continue;
    // Packages of others are Biome's and package.json's business; ours are always imported by a relative path.
    const own = text.startsWith('.') ? posix.join(posix.dirname(file), text) : undefined;
    const byName = text === 'holdfast' || text.startsWith('holdfast/');
    if (!byName && (own === undefined || own === 'package.json' || own.endsWith('/'))) continue; // the version may be read, folders be named
    if (!allowed.some((folder) => `${own}/`.startsWith(`${folder}/`))) {
      fail(`${file}:${line} imports ${own ?? text}; it may import from ${allowed.join(', ')} only`);
      continue;
    }
    const passed = own && entrancePassed(file, own);
    if (passed) fail(`${file}:${line} imports ${own} past ${passed}, the entrance of its folder`);
    remember(PART.exec(file)?.[1], own && PART.exec(own)?.[1]);
  }
}
for (const part of importsOf.keys()) {
  const back = [...(importsOf.get(part) ?? [])].find((other) => reaches(other, part));
  if (back !== undefined) fail(`${part} imports from ${back}, which leads back to it`);
}
if (failures > 0) process.exitCode = 1;
console.log(
  `imports: ${failures === 0 ? 'every layer and every folder keeps to its own' : `${failures} against the rules`}`,
);

function fail(text) {
  failures += 1;
  console.error(text);
}

/** @returns the entrance of a folder that an import from outside of it does not use */
function entrancePassed(from, to) {
  for (let folder = posix.dirname(to); folder !== 'src' && folder !== '.'; folder = posix.dirname(folder)) {
    const entrance = `${folder}/index.ts`;
    if (entrances.has(entrance) && to !== entrance && !from.startsWith(`${folder}/`)) return entrance;
  }
  return undefined;
}

function remember(part, other) {
  if (part === undefined || other === undefined || part === other) return;
  if (posix.dirname(part) !== posix.dirname(other)) return;
  importsOf.set(part, (importsOf.get(part) ?? new Set()).add(other));
}

function reaches(from, to, seen = new Set()) {
  if (from === to) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return [...(importsOf.get(from) ?? [])].some((next) => reaches(next, to, seen));
}
