import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { COMPILER_ENV } from './support/compiler.ts';

const root = fileURLToPath(new URL('../', import.meta.url));
const tsc = [join(root, 'node_modules/typescript/bin/tsc'), '--singleThreaded'];
const env = COMPILER_ENV;

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

/** The package as its tarball holds it, with what it depends on: built once, in a folder above those of the tests. */
const shared = mkdtempSync(join(tmpdir(), 'holdfast-'));
test.before(() => install(shared));
test.after.always(() => rmSync(shared, { recursive: true, force: true }));

function install(dir: string): void {
  const place = join(dir, 'node_modules/holdfast');
  mkdirSync(place, { recursive: true });
  const build = ['-p', join(root, 'tsconfig.build.json'), '--outDir', join(place, 'dist')];
  execFileSync(process.execPath, [...tsc, ...build], { env });
  cpSync(join(root, 'package.json'), join(place, 'package.json'));
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const name of [...Object.keys(dependencies), '@types/node', 'undici-types']) {
    mkdirSync(join(dir, 'node_modules', name, '..'), { recursive: true });
    symlinkSync(join(root, 'node_modules', name), join(dir, 'node_modules', name));
  }
}

/** A project of its own in which the package is found. */
function project(name: string): string {
  const dir = join(shared, name);
  mkdirSync(dir);
  writeFileSync(join(dir, 'package.json'), JSON.stringify({ type: 'module' }));
  return dir;
}

test('[C11] the packed package has all that a plugin outside of this repository needs, with types', (t) => {
  t.timeout(240_000);
  const dir = project('plugin');
  writeFileSync(join(dir, 'plugin.ts'), CONSUMER);
  const strict = ['--strict', '--module', 'nodenext', '--target', 'es2024', '--lib', 'es2025,esnext.array'];
  execFileSync(process.execPath, [...tsc, ...strict, '--types', 'node', 'plugin.ts'], { cwd: dir, env });
  const exact = spawnSync(
    process.execPath,
    [...tsc, ...strict, '--exactOptionalPropertyTypes', '--types', 'node', '--noEmit', 'plugin.ts'],
    { cwd: dir, env, encoding: 'utf8' },
  );
  // XState's own declarations do not hold with that option; ours, and what a plugin writes, do.
  const ours = exact.stdout.split('\n').filter((line) => /^\S+\(\d/.test(line) && !/\/xstate\//.test(line));
  t.deepEqual(ours, []);
  const log = join(root, 'test/fixtures/logs/0.2.0/healed.jsonl.gz');
  const said = execFileSync(process.execPath, ['plugin.js', log], { cwd: dir, encoding: 'utf8' });
  t.regex(said, /^nothing was compared of actors that were given:/);
});

test('[C11] a program that embeds the packed package is checked by its own strict settings, and runs to its end', (t) => {
  t.timeout(240_000);
  const dir = project('program');
  for (const file of ['main.ts', 'bell.ts', 'tsconfig.json'])
    cpSync(join(root, 'examples/embedded', file), join(dir, file));
  const checked = spawnSync(process.execPath, [...tsc, '-p', '.'], { cwd: dir, env, encoding: 'utf8' });
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
