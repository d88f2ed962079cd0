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
  const files = ['src', join('scripts', 'console')]
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
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

/** @param options of rolldown, beside those of all scripts of the console */
async function bundle(options) {
  const build = await rolldown({
    platform: 'browser',
    ...options,
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

const ENTRY = 'viewer-entry';
/** Before the first schema is made: the policy of an exported page lets no text become code. */
const FIRST = { id: 'viewer-first', code: "import { config } from 'zod'; config({ jitless: true });" };
/** An import in minified code. */
const IMPORT = /\bimport\s*(?:[\w*{][^;"'`]*?from\s*)?\(?["'`]([^"'`]+)["'`]/g;

/** The viewer of exported pages: the pages, the API that answers them, and what plugins bring, in one script without Node. */
async function bundleViewer() {
  const { viewerEntry } = await import('./console/viewer-entry.ts'); // reads the whole product, as the drawings do
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const { entry, machines } = await viewerEntry();
  const code = await bundle({
    input: ENTRY,
    treeshake: {
      moduleSideEffects: [
        { test: /[\\/]console[\\/]web[\\/]/, sideEffects: true },
        // Others of the product do nothing when they are loaded: what is not used goes, with what it needs of Node.
        { test: /[\\/]src[\\/].*\.ts$/, sideEffects: false },
      ],
    },
    plugins: [
      {
        name: 'viewer',
        resolveId: (id) => {
          if (id === ENTRY || id === FIRST.id) return id;
          // An import that is left when everything unused is gone is found below.
          return id.startsWith('node:') ? { id, external: true, moduleSideEffects: false } : undefined;
        },
        load: (id) => {
          if (id === ENTRY) return `import '${FIRST.id}';\n${entry}`;
          if (id === FIRST.id) return FIRST.code;
          return id.endsWith('/core/kernel/version.ts')
            ? `export const version = ${JSON.stringify(version)};`
            : undefined;
        },
      },
    ],
  });
  const needed = [...code.matchAll(IMPORT)].map(([, name]) => name);
  if (needed.length > 0) throw new Error(`the viewer of exported pages would import ${needed.join(', ')}`);
  return { code, machines };
}

async function main() {
  const digest = digestOfSources();
  if (!process.argv.includes('--force') && isCurrent(digest)) return;
  const started = performance.now();
  const files = {
    'console.js': await bundle({ input: join(source, 'main.tsx') }),
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
  const { code: viewer, machines } = await bundleViewer();
  mkdirSync(join(target, 'export'));
  writeFileSync(join(target, 'export', 'viewer.js'), viewer);
  writeFileSync(join(target, 'export', 'viewer.css'), files['console.css']);
  writeFileSync(join(target, 'export', 'icon.svg'), files['icon.svg']);
  writeFileSync(join(target, 'export', 'machines.json'), JSON.stringify(machines));
  writeFileSync(digestFile, `${digest}\n`);
  const took = ((performance.now() - started) / 1000).toFixed(1);
  const kilobytes = (text) => Math.round(Buffer.byteLength(text) / 1000);
  console.log(
    `console: built in ${took} s, ${kilobytes(files['console.js'])} kB of script, ${drawings.size} statecharts, ${kilobytes(viewer)} kB of viewer for exported pages`,
  );
}

await main();
