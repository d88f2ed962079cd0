import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { newConfig, withPlugin } from '../../../src/cli/plugin/config-text.ts';
import { root } from '../../support/cli.ts';

const IMPORT = "import { lamp } from './plugins/lamp/plugin.ts';";

test('[C11] a plugin is added to the shipped configuration behind its imports, at the beginning of its list', (t) => {
  const text = readFileSync(join(root, 'plugins.config.ts'), 'utf8');
  const changed = withPlugin(text, IMPORT, 'lamp()') ?? '';
  const added = changed.split('\n').filter((line) => !text.split('\n').includes(line));
  t.deepEqual(added, [IMPORT, '    lamp(),']);
  t.regex(changed, /watchdog\/index\.ts';\nimport \{ lamp \}/);
  t.regex(changed, /plugins: \[\n {4}lamp\(\),\n {4}\/\/ Several hosts/);
});

test('[C11] comments and texts that look like the list or an import are passed over', (t) => {
  const text = [
    "// import { a } from 'a'; plugins: [",
    "import { defineConfig } from 'holdfast';",
    "/* plugins: [ */ const url = 'http://x/plugins: [';",
    'export default defineConfig({ plugins: [] });',
  ].join('\n');
  t.is(
    withPlugin(text, IMPORT, 'lamp()'),
    [
      "// import { a } from 'a'; plugins: [",
      "import { defineConfig } from 'holdfast';",
      IMPORT,
      "/* plugins: [ */ const url = 'http://x/plugins: [';",
      'export default defineConfig({ plugins: [',
      '    lamp(),] });',
    ].join('\n'),
  );
  t.is(withPlugin('export default defineConfig({ plugins: [] })', IMPORT, 'lamp()'), undefined, 'no import');
});

test('[C11] a new configuration has the imports and the list', (t) => {
  t.is(
    newConfig([IMPORT], ['lamp()']),
    `import { defineConfig } from 'holdfast';\n${IMPORT}\n\nexport default defineConfig({\n  plugins: [\n    lamp(),\n  ],\n});\n`,
  );
});
