import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { spawnHoldfast } from '../../support/cli.ts';
import { tempDir } from '../../support/temp.ts';

const KINDS = ['route', 'machine', 'adapter', 'check'] as const;

async function run(t: Parameters<typeof spawnHoldfast>[0], cwd: string, ...args: string[]) {
  const child = spawnHoldfast(t, args, {
    cwd,
    env: { HOLDFAST_GATEWAY_PORT: '0', HOLDFAST_CONSOLE_PORT: '0' },
  });
  const { code, out, err } = await child.ended;
  return { code, stdout: out, stderr: err };
}

for (const kind of KINDS) {
  test(`[C11] a new plugin with a ${kind} is written into a project of nothing, is listed, and its tests pass`, async (t) => {
    t.timeout(180_000);
    const folder = tempDir(t);
    const made = await run(t, folder, 'plugin', 'new', 'water-level', `--${kind}`);
    t.is(made.code, 0, made.stderr);
    t.regex(made.stdout, /changed: plugins\.config\.ts lists waterLevel\(\)/);
    const tested = await run(t, folder, 'plugin', 'test', 'water-level');
    t.is(tested.code, 0, tested.stdout + tested.stderr);
    t.regex(tested.stdout, /pass [1-9]/);
    const { stdout } = await run(t, folder, 'plugin', 'list', '--json');
    const listed = JSON.parse(stdout).find(({ name }: { name: string }) => name === 'water-level');
    t.like(listed, { state: 'listed', from: 'plugins/water-level/plugin.ts' });
    t.true(listed.provides.length > 0);
  });
}

test('[C11,G1] the new route of a running instance is healthy, and a client entry for it is printed', async (t) => {
  t.timeout(180_000);
  const folder = tempDir(t);
  await run(t, folder, 'plugin', 'new', 'water-level');
  const env = { HOLDFAST_GATEWAY_PORT: '0', HOLDFAST_CONSOLE_PORT: '0' };
  const instance = spawnHoldfast(t, ['start'], { cwd: folder, env });
  await instance.see(/Holdfast is ready/);
  for (;;) {
    const { stdout } = await run(t, folder, 'gateway', 'routes');
    if (/water_level +credential_free +healthy +1 .*in this process \(plugin water-level\)/.test(stdout))
      break;
  }
  const { stdout } = await run(t, folder, 'gateway', 'client-config', '--route', 'water_level');
  t.regex(stdout, /water_level .*\/water_level\/mcp/);
  const listed = JSON.parse((await run(t, folder, 'plugin', 'list', '--json')).stdout);
  t.true(listed.every(({ state }: { state: string }) => state === 'started'));
  for (const { name, provides } of listed) t.deepEqual(provides, [...new Set(provides)], name);
});

test('[C11] a configuration that cannot be changed stays as it was, and what to add is said; a folder that exists is left alone', async (t) => {
  t.timeout(180_000);
  const folder = tempDir(t);
  const text = `import { defineConfig } from 'holdfast';\nconst mine = [];\nexport default defineConfig({ plugins: mine });\n`;
  writeFileSync(join(folder, 'plugins.config.ts'), text);
  const made = await run(t, folder, 'plugin', 'new', 'lamp', '--check');
  t.is(made.code, 1);
  t.regex(
    made.stderr,
    /stays as it was.*\n.*import \{ lamp \} from '\.\/plugins\/lamp\/plugin\.ts';\n +lamp\(\)/,
  );
  t.is(readFileSync(join(folder, 'plugins.config.ts'), 'utf8'), text);
  mkdirSync(join(folder, 'plugins', 'bulb'));
  const again = await run(t, folder, 'plugin', 'new', 'bulb');
  t.is(again.code, 2);
  t.regex(again.stderr, /HF_CLI_PLUGIN[\s\S]*exists already/);
  t.deepEqual(readdirSync(join(folder, 'plugins', 'bulb')), []);
  for (const name of ['Lamp', '../lamp', 'lamp--x', 'x'.repeat(41)]) {
    t.is((await run(t, folder, 'plugin', 'new', name)).code, 2, name);
  }
  t.false(existsSync(join(folder, 'plugins', 'Lamp')));
});
