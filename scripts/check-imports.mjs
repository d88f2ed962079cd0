// The import rules of the layers, part of `npm run lint`. Biome's noRestrictedImports compares the text of a specifier,
// and `../x/index.ts` reads the same whether it stays in a plugin's folder or enters another plugin: the path has to be
// resolved first. And within a plugin folders import each other in one direction, so that each can be read by itself.
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSource, sourceFiles, strings } from './source.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

/** The layers, first match counts. `may` names folders besides the layer's own; `$1` is what `folder` captured. */
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

const IMPORT = /(?:\bfrom|\bimport|\bimport\s*\(|\brequire\s*\(|\bnew\s+URL\s*\()\s*$/;

const ROOM = /^(src\/plugins\/[^/]+\/[^/]+)\//;
/** The folders of plugins, each with those of the same plugin that it imports from. */
const rooms = new Map();

let failures = 0;
for (const file of sourceFiles(root, 'src')) {
  const layer = LAYERS.find(({ folder }) => folder.test(file));
  const allowed = [layer.folder.exec(file)[1], ...layer.may];
  for (const { text, before, line } of strings(readSource(root, file))) {
    if (!IMPORT.test(before)) continue;
    // Packages of others are Biome's and package.json's business; ours are always imported by a relative path.
    const own = text.startsWith('.') ? posix.join(posix.dirname(file), text) : undefined;
    const byName = text === 'holdfast' || text.startsWith('holdfast/');
    if (!byName && (own === undefined || own === 'package.json' || own.endsWith('/'))) continue; // the version may be read, folders be named
    if (allowed.some((folder) => `${own}/`.startsWith(`${folder}/`))) {
      enter(ROOM.exec(file)?.[1], own && ROOM.exec(own)?.[1]);
      continue;
    }
    failures += 1;
    console.error(`${file}:${line} imports ${own ?? text}; it may import from ${allowed.join(', ')} only`);
  }
}
for (const room of rooms.keys()) {
  const back = [...(rooms.get(room) ?? [])].find((other) => reaches(other, room));
  if (back === undefined) continue;
  failures += 1;
  console.error(`${room} imports from ${back}, which leads back to it`);
}
if (failures > 0) process.exitCode = 1;
console.log(`imports: ${failures === 0 ? 'every layer keeps to its own' : `${failures} against the rules`}`);

function enter(room, other) {
  if (room === undefined || other === undefined || room === other) return;
  if (posix.dirname(room) !== posix.dirname(other)) return;
  rooms.set(room, (rooms.get(room) ?? new Set()).add(other));
}

function reaches(from, to, seen = new Set()) {
  if (from === to) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  return [...(rooms.get(from) ?? [])].some((next) => reaches(next, to, seen));
}
