import { readFileSync } from 'node:fs';
import test from 'ava';
import { graphSection } from '../../src/core/cli/graph/index.ts';
import { loadConfig } from '../../src/core/config/index.ts';
import { PluginHost } from '../../src/core/plugin/index.ts';

test('[C11] the graph in docs/architecture.md is what the plugins declare', async (t) => {
  const file = new URL('../../plugins.config.ts', import.meta.url).pathname;
  const { plugins } = await loadConfig({ file, env: {} });
  const page = readFileSync(new URL('../../docs/architecture.md', import.meta.url), 'utf8');
  t.is(page, graphSection(page, new PluginHost(plugins).register()), 'run `npm run docs`');
});
