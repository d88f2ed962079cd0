import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { loadConfig } from '../../../../src/core/host/config/load.ts';
import { PluginHost } from '../../../../src/core/host/plugin/host.ts';
import type { HoldfastError } from '../../../../src/core/kernel/errors/holdfast-error.ts';

/** A folder outside the checkout, with these files in it. */
function folder(t: ExecutionContext, files: Record<string, string>): string {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-config-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(dir, name, '..'), { recursive: true });
    writeFileSync(join(dir, name), text);
  }
  return dir;
}

const beeper = `
  import { z } from 'zod';
  import { definePlugin } from 'holdfast';
  export const beeper = definePlugin({
    name: 'beeper',
    options: z.strictObject({ everyMs: z.int().positive().default(1000) }),
    env: { BEEP_MS: 'everyMs' },
    register(context, options) { context.health('beeper', () => options.everyMs); },
  });`;

const load = (t: ExecutionContext, cwd: string) =>
  t.throwsAsync<HoldfastError>(loadConfig({ cwd, env: {} })) as Promise<HoldfastError>;

test('[C11] a plugin is one file and one entry, in a folder that has no packages at all', async (t) => {
  const cwd = folder(t, {
    'plugins/beeper.ts': beeper,
    'plugins.config.ts': `
      import { beeper } from './plugins/beeper.ts';
      export default { plugins: [beeper({ everyMs: 500 })], data: { dir: 'data' } };`,
  });
  const loaded = await loadConfig({ cwd, env: {} });
  t.is(loaded.file, join(cwd, 'plugins.config.ts'));
  t.is(loaded.dataDir, join(cwd, 'data'));
  t.deepEqual(loaded.plugins[0]?.options, { everyMs: 500 });
  const { health } = new PluginHost(loaded.plugins).register();
  t.is(health[0]?.name, 'beeper');

  const overridden = await loadConfig({ cwd, env: { BEEP_MS: '20' } });
  t.deepEqual(overridden.plugins[0]?.options, { everyMs: 20 });
});

test('--config names a file of any name, relative to the working directory', async (t) => {
  const cwd = folder(t, { 'etc/lab.config.ts': 'export default { plugins: [] };' });
  const { file, plugins } = await loadConfig({ cwd, file: 'etc/lab.config.ts', env: {} });
  t.is(file, join(cwd, 'etc/lab.config.ts'));
  t.deepEqual(plugins, []);
});

test('[C11] a missing configuration is an error that names where it was looked for', async (t) => {
  const cwd = folder(t, {});
  const error = await load(t, cwd);
  t.is(error.code, 'HF_CONFIG_NOT_FOUND');
  t.true(error.message.includes(join(cwd, 'plugins.config.ts')));
});

test('[C11] a configuration that cannot be imported says why and on which line', async (t) => {
  const syntax = await load(t, folder(t, { 'plugins.config.ts': 'const a = 1;\nexport default {{;\n' }));
  t.is(syntax.code, 'HF_CONFIG_LOAD');
  t.regex(syntax.what, /\(line 2\)/);
  const throws = await load(t, folder(t, { 'plugins.config.ts': "\n\nthrow new Error('no luck.');" }));
  t.regex(throws.what, /could not be loaded: no luck \(line 3\)\.$/);
  const inPlugin = await load(
    t,
    folder(t, {
      'beeper.ts': '\n\nexport const beeper = {',
      'plugins.config.ts': "import './beeper.ts';\nexport default { plugins: [] };",
    }),
  );
  t.regex(inPlugin.what, /plugins\.config\.ts could not be loaded: .* \(.*beeper\.ts:3\)/);
  const missing = await load(
    t,
    folder(t, { 'plugins.config.ts': "import 'no-such-package-here';\nexport default { plugins: [] };" }),
  );
  t.regex(missing.what, /no-such-package-here/);
});

test('[C11] a configuration without a default export of defineConfig is refused', async (t) => {
  const error = await load(t, folder(t, { 'plugins.config.ts': 'export const plugins = [];' }));
  t.is(error.code, 'HF_CONFIG_LOAD');
  t.regex(error.what, /no `export default defineConfig/);
});

test('[C11] outside the checkout, `holdfast` means the modules of this process, and its packages are found', (t) => {
  const cwd = folder(t, {
    'plugins.config.ts': `
      import { z } from 'zod';
      import { defineConfig, definePlugin, HoldfastError } from 'holdfast';
      export { HoldfastError };
      const one = definePlugin({ name: 'one', options: z.strictObject({}), register() {} });
      export default defineConfig({ plugins: [one()] });`,
    'run.mjs': `
      import { join } from 'node:path';
      import { pathToFileURL } from 'node:url';
      const [root] = process.argv.slice(2);
      const { loadConfig } = await import(root + 'src/core/host/config/load.ts');
      const { HoldfastError } = await import(root + 'src/core/kernel/errors/holdfast-error.ts');
      const loaded = await loadConfig({ env: {} });
      const config = await import(pathToFileURL(loaded.file).href);
      console.log(loaded.plugins[0].definition.name, config.HoldfastError === HoldfastError);`,
  });
  const root = new URL('../../../../', import.meta.url).href;
  t.is(execFileSync(process.execPath, ['run.mjs', root], { cwd, encoding: 'utf8' }), 'one true\n');
});
