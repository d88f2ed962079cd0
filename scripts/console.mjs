// Builds the pages of the console into dist/console, where the plugin serves them from: one script, one style sheet,
// both named by a digest of what they hold, and index.html. Does nothing when they are built from the same sources.
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

function digestOfSources() {
  const files = readdirSync(source, { recursive: true, withFileTypes: true })
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
  let page = readFileSync(join(source, 'index.html'), 'utf8');
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    const hashed = name.replace('.', `-${digestOf(content).slice(0, 12)}.`);
    writeFileSync(join(target, hashed), content);
    page = page.replace(`"${name}"`, `"/${hashed}"`);
  }
  writeFileSync(join(target, 'index.html'), page);
  writeFileSync(digestFile, `${digest}\n`);
  const kilobytes = Math.round(Buffer.byteLength(files['console.js']) / 1000);
  console.log(
    `console: built in ${((performance.now() - started) / 1000).toFixed(1)} s, ${kilobytes} kB of script`,
  );
}

await main();
