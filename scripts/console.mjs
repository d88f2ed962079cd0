// Builds the pages of the console into dist/console, where the plugin serves them from: index.html, one script and one
// style sheet, both named by a digest of what they hold, and the drawings of the product's machines. Does nothing when
// all of it was built from the same sources.
//   node scripts/console.mjs            builds what is out of date
//   node scripts/console.mjs --force    builds in any case
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = join(root, 'src', 'plugins', 'console', 'web');
const target = join(root, 'dist', 'console');
const digestFile = join(target, 'sources.txt');

const digestOf = (...contents) => {
  const hash = createHash('sha256');
  for (const content of contents) hash.update(content).update('\0');
  return hash.digest('hex');
};

/** The drawings depend on the machines, which are all over the source. */
function digestOfSources() {
  const files = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const own = [fileURLToPath(import.meta.url), join(root, 'package-lock.json')];
  return digestOf(...[...own, ...files].flatMap((file) => [file.slice(root.length), readFileSync(file)]));
}

function isCurrent(digest) {
  try {
    return readFileSync(digestFile, 'utf8').trim() === digest;
  } catch {
    return false;
  }
}

async function bundle() {
  const build = await rolldown({
    input: join(source, 'main.tsx'),
    platform: 'browser',
    transform: {
      target: 'es2024',
      define: { 'process.env.NODE_ENV': '"production"' },
    },
  });
  try {
    const { output } = await build.generate({ format: 'esm', minify: true, codeSplitting: false });
    return output[0].code;
  } finally {
    await build.close();
  }
}

async function main() {
  const digest = digestOfSources();
  if (!process.argv.includes('--force') && isCurrent(digest)) return;
  const started = performance.now();
  const files = {
    'console.js': await bundle(),
    'console.css': readFileSync(join(source, 'console.css'), 'utf8'),
    'icon.svg': readFileSync(join(source, 'icon.svg'), 'utf8'),
  };
  const { drawMachines } = await import('./console/drawings.ts'); // reads the whole product: only when it has to be built
  const drawings = await drawMachines();
  let page = readFileSync(join(source, 'index.html'), 'utf8');
  rmSync(target, { recursive: true, force: true });
  mkdirSync(join(target, 'assets'), { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    const hashed = `assets/${name.replace('.', `-${digestOf(content).slice(0, 12)}.`)}`;
    writeFileSync(join(target, hashed), content);
    page = page.replace(`"${name}"`, `"/${hashed}"`);
  }
  mkdirSync(join(target, 'machines'));
  for (const [name, drawing] of drawings)
    writeFileSync(join(target, 'machines', `${name}.json`), JSON.stringify(drawing));
  writeFileSync(join(target, 'index.html'), page);
  writeFileSync(digestFile, `${digest}\n`);
  const took = ((performance.now() - started) / 1000).toFixed(1);
  const kilobytes = Math.round(Buffer.byteLength(files['console.js']) / 1000);
  console.log(`console: built in ${took} s, ${kilobytes} kB of script, ${drawings.size} statecharts`);
}

await main();
