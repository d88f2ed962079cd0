// The import rules of the layers, part of `npm run lint`. Biome's noRestrictedImports compares the text of a specifier,
// and `../x/index.ts` reads the same whether it stays in a plugin's folder or enters another plugin: the path has to be
// resolved first.
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSource, sourceFiles, strings } from './source.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The layers, first match counts. `may` names folders besides the layer's own; `$1` is what `folder` captured. */
const LAYERS = [
  { folder: /^(src\/machines)\//, may: [] },
  { folder: /^(src\/bus)\//, may: [] },
  { folder: /^(src\/core)\//, may: ['src/bus'] },
  { folder: /^(src\/plugins\/[^/]+)\//, may: ['src/core', 'src/bus', 'src/machines'] },
  { folder: /^(src)\//, may: [] }, // the composition root: anything of the product, nothing of test or bench
];

const IMPORT = /(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\(|\bnew\s+URL\s*\()\s*$/;

let failures = 0;
for (const file of sourceFiles(root, 'src')) {
  const layer = LAYERS.find(({ folder }) => folder.test(file));
  const allowed = [layer.folder.exec(file)[1], ...layer.may];
  for (const { text, before, line } of strings(readSource(root, file))) {
    if (!IMPORT.test(before)) continue;
    // Packages of others are Biome's and package.json's business; ours are always imported by a relative path.
    const own = text.startsWith('.') ? posix.join(posix.dirname(file), text) : undefined;
    const byName = text === 'holdfast' || text.startsWith('holdfast/');
    if (!byName && (own === undefined || own === 'package.json')) continue; // the version may be read
    if (allowed.some((folder) => `${own}/`.startsWith(`${folder}/`))) continue;
    failures += 1;
    console.error(`${file}:${line} imports ${own ?? text}; it may import from ${allowed.join(', ')} only`);
  }
}
if (failures > 0) process.exitCode = 1;
console.log(`imports: ${failures === 0 ? 'every layer keeps to its own' : `${failures} against the rules`}`);
