import { execFileSync, spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { publint } from 'publint';
import { tempDir } from './support/temp.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const tsc = join(root, 'node_modules/typescript/bin/tsc');

/** A plugin, its machine and its test, as somebody writes them who has the package alone. */
const CONSUMER = `
import { deepStrictEqual } from 'node:assert';
import { defineActor, defineConfig, definePlugin, defineTopic } from 'holdfast';
import { type Alert, assign, effect, setup } from 'holdfast/machines';
import { elapsed, given, impurities, replayFixture } from 'holdfast/testing';
import { z } from 'zod';

const machine = setup({
  types: { context: {} as { rings: number }, events: {} as { type: 'RUNG'; by: string } },
  actions: { 'doorbell.chime': effect<{ times: number }>(), 'alerts.raise': effect<Alert>() },
  delays: { quiet: 500 },
}).createMachine({
  id: 'doorbell',
  context: { rings: 0 },
  initial: 'idle',
  states: {
    idle: {
      on: {
        RUNG: {
          target: 'ringing',
          actions: [
            assign({ rings: ({ context }) => context.rings + 1 }),
            { type: 'doorbell.chime', params: ({ context }) => ({ times: context.rings }) },
          ],
        },
      },
    },
    ringing: { after: { quiet: 'idle' } },
  },
});

given(machine)
  .when({ type: 'RUNG', by: 'ann' })
  .then({ state: 'ringing', effects: [{ type: 'doorbell.chime', params: { times: 1 } }] })
  .when(elapsed('quiet'))
  .then({ state: 'idle' });
deepStrictEqual(impurities(machine), []);

const bell = defineActor({
  type: 'doorbell',
  machine,
  version: 2,
  migrate: ({ value, context }, fromVersion) => (fromVersion === 1 ? { value, context } : undefined),
});
const rung = defineTopic('doorbell.rung', z.object({ by: z.string() }), 'Somebody rang.');
const doorbell = definePlugin({
  name: 'doorbell',
  options: z.strictObject({ door: z.string().default('front') }),
  register(context, { door }) {
    context.actor(bell);
    context.route(rung, bell, ({ payload }) => [{ key: door, event: { type: 'RUNG', by: payload.by } }]);
    context.effect('doorbell.chime', ({ times }: { times: number }) => void times, { onRecovery: 'fail' });
  },
});
export default defineConfig({ plugins: [doorbell({ door: 'back' })] });

const [log = ''] = process.argv.slice(2);
const caught = await replayFixture(log, [bell]).catch((error: Error) => error.message);
console.log(String(caught).split('\\n')[0]);
`;

/** What every line of `exports` leads to, and what a declaration file has to be right for: all of it is checked. */
const EVERY_EXPORT = () => {
  const plugins = readdirSync(join(root, 'src/plugins')).map((name) => `holdfast/plugins/${name}`);
  const specifiers = ['holdfast', 'holdfast/machines', 'holdfast/testing', ...plugins];
  const imports = specifiers.map((specifier, index) => `import * as module${index} from '${specifier}';`);
  const used = specifiers.map((_, index) => `module${index}`);
  return [...imports, `console.log([${used}].every((one) => Object.keys(one).length > 0));`, ''].join('\n');
};

/** The compiler's settings by which somebody may use the package, the strictest of each. */
const RESOLUTIONS = {
  nodenext: ['--module', 'nodenext'],
  bundler: ['--module', 'preserve', '--moduleResolution', 'bundler'],
} as const;
const STRICT = [
  '--strict',
  '--noUncheckedIndexedAccess',
  '--exactOptionalPropertyTypes',
  '--skipLibCheck',
  'false',
];
const TARGET = ['--target', 'es2024', '--lib', 'es2025,esnext.array', '--types', 'node'];

const packed = mkdtempSync(join(tmpdir(), 'holdfast-packed-'));
const tarball = join(packed, 'holdfast.tgz');

test.before('the package is packed once', (t) => {
  t.timeout(240_000);
  const stage = join(packed, 'stage');
  for (const file of [
    'package.json',
    'LICENSE',
    'README.md',
    'CHANGELOG.md',
    'SECURITY.md',
    'bin',
    'deploy',
    'docs',
  ])
    cpSync(join(root, file), join(stage, file), { recursive: true });
  const build = ['-p', join(root, 'tsconfig.build.json'), '--outDir', join(stage, 'dist')];
  execFileSync(process.execPath, [tsc, ...build]);
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', packed];
  const name = execFileSync('npm', pack, { cwd: stage, encoding: 'utf8' }).trim();
  renameSync(join(packed, name), tarball);
  rmSync(stage, { recursive: true });
});

test.after.always('the packed package is removed', () => rmSync(packed, { recursive: true, force: true }));

/** The packed package, with what it depends on, in an empty folder. */
function installed(dir: string): string {
  const place = join(dir, 'node_modules/holdfast');
  mkdirSync(place, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '-C', place, '--strip-components=1']);
  const { dependencies } = JSON.parse(readFileSync(join(place, 'package.json'), 'utf8'));
  for (const name of [...Object.keys(dependencies), '@types/node', 'undici-types']) {
    mkdirSync(join(dir, 'node_modules', name, '..'), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(dir, 'node_modules', name));
  }
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ type: 'module' }));
  return place;
}

test('[C11] the packed package has all that a plugin outside of this repository needs', (t) => {
  t.timeout(240_000);
  const dir = tempDir(t);
  installed(dir);
  writeFileSync(join(dir, 'plugin.ts'), CONSUMER);
  execFileSync(process.execPath, [tsc, '--strict', '--module', 'nodenext', ...TARGET, 'plugin.ts'], {
    cwd: dir,
  });
  const log = join(root, 'test/fixtures/logs/0.2.0/healed.jsonl.gz');
  const said = execFileSync(process.execPath, ['plugin.js', log], { cwd: dir, encoding: 'utf8' });
  t.regex(said, /^records could not be compared:/);
});

for (const [resolution, settings] of Object.entries(RESOLUTIONS)) {
  test(`[C11] the types of every export hold in the strictest program that resolves modules as ${resolution}`, (t) => {
    t.timeout(240_000);
    const dir = tempDir(t);
    installed(dir);
    writeFileSync(join(dir, 'plugin.ts'), CONSUMER);
    writeFileSync(join(dir, 'every.ts'), EVERY_EXPORT());
    const args = [tsc, ...STRICT, ...settings, ...TARGET, '--noEmit', 'plugin.ts', 'every.ts'];
    const { stdout } = spawnSync(process.execPath, args, { cwd: dir, encoding: 'utf8' });
    // Declarations of other packages do not all hold with such settings; ours, and what a plugin writes, do.
    const wrong = stdout.split('\n').filter((line) => /^\S+\(\d/.test(line));
    t.deepEqual(
      wrong.filter((line) => !/^\S*node_modules\/(?!holdfast\/)/.test(line)),
      [],
    );
  });
}

test('[C11] publint finds nothing in the tarball, which has its licence and maps to sources of its own', async (t) => {
  t.timeout(240_000);
  const dir = tempDir(t);
  const place = installed(dir);
  const bytes = new Uint8Array(readFileSync(tarball));
  const { messages } = await publint({ pack: { tarball: bytes.buffer }, strict: true });
  t.deepEqual(messages, []);
  t.true(readFileSync(join(place, 'LICENSE'), 'utf8').length > 100);
  const map = JSON.parse(readFileSync(join(place, 'dist/index.js.map'), 'utf8'));
  t.true(map.sourcesContent[0].includes('createRuntime'));
  const fails =
    "import('holdfast').then(({ defineConfig, resolveConfig }) => resolveConfig(defineConfig({ plugins: [{}] })));";
  const { stderr } = spawnSync(process.execPath, ['--enable-source-maps', '-e', fails], {
    cwd: dir,
    encoding: 'utf8',
  });
  t.regex(stderr, /src\/core\/host\/config\/resolve\.ts:\d+/);
});

test('[C11] a program that embeds the packed package is checked by its own strict settings, and runs to its end', (t) => {
  t.timeout(240_000);
  const dir = tempDir(t);
  installed(dir);
  for (const file of ['main.ts', 'bell.ts', 'tsconfig.json'])
    cpSync(join(root, 'examples/embedded', file), join(dir, file));
  const checked = spawnSync(process.execPath, [tsc, '-p', '.'], { cwd: dir, encoding: 'utf8' });
  t.is(checked.stdout, '');
  const { stdout, stderr, status } = spawnSync(process.execPath, ['main.ts'], {
    cwd: dir,
    encoding: 'utf8',
    env: { ...process.env, TMPDIR: dir },
  });
  t.is(status, 0, stderr);
  const guide = readFileSync(join(root, 'docs/guides/embedding.md'), 'utf8');
  const said = stdout.split('\n').filter((line) => line !== '' && !line.startsWith('{"level"'));
  t.is(said.length, 11);
  for (const line of said) t.true(guide.includes(`    ${line}\n`), line);
});
