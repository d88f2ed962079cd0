import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { loadConfig } from '../../../src/core/host/config/load.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../../src/index.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { Rig } from './rig.ts';

const page = readFileSync(new URL('../../../docs/gateway.md', import.meta.url), 'utf8');
const blocks = [...page.matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code = '']) => code);
const kind = blocks.find((code) => code.startsWith('// plugins/api-key-route.ts')) ?? '';
const entry = blocks.find((code) => code.startsWith('apiKeyRoute(')) ?? '';

/** A store of secrets in the place of the folder's: a plugin of one file, too. */
const store = `
  import { z } from 'zod';
  import { definePlugin, SecretsStoreToken } from 'holdfast';
  export const store = definePlugin({
    name: 'store', options: z.strictObject({}), provides: [SecretsStoreToken],
    register(context) {
      context.provide(SecretsStoreToken, () => ({ read: async (path, property) => \`canary \${path} \${property}\` }));
    },
  });`;

class KindRig extends Rig {
  static async open(t: Parameters<typeof Rig.start>[0], routes: string): Promise<KindRig> {
    const folder = tempDir(t);
    mkdirSync(join(folder, 'plugins'));
    writeFileSync(join(folder, 'plugins', 'api-key-route.ts'), kind);
    writeFileSync(join(folder, 'plugins', 'store.ts'), store);
    writeFileSync(
      join(folder, 'plugins.config.ts'),
      `import { defineConfig } from 'holdfast';
       import { gateway } from 'holdfast/plugins/gateway';
       import { apiKeyRoute } from './plugins/api-key-route.ts';
       import { store } from './plugins/store.ts';
       export default defineConfig({ plugins: [store(), gateway({ port: 0, probeEveryMs: 0, routes: [${routes}] })] });`,
    );
    const { plugins } = await loadConfig({ cwd: folder, env: {} });
    const dataDir = join(folder, 'data');
    const logger = createLogger({ level: 'silent' });
    mkdirSync(dataDir, { mode: 0o700 });
    const runtime = createRuntime({ plugins, dataDir, logger });
    await runtime.start();
    t.teardown(() => runtime.stop('test'));
    return new KindRig(runtime, dataDir, []);
  }
}

test('[C11,G1] a new kind of route is one file and an entry: the example of the documentation serves', async (t) => {
  const upstream = await startUpstream(t);
  const rig = await KindRig.open(
    t,
    entry.replace("name: 'web_search',", `name: 'web_search', url: '${upstream.url}',`),
  );
  const client = await rig.connect(t, 'web_search', await rig.mint({ servers: ['web_search'] }));
  t.deepEqual((await client.listTools()).tools.map(({ name }) => name).sort(), [
    'web_search-echo',
    'web_search-fail',
  ]);
  t.true(upstream.asked.every(({ headers }) => headers['x-search-key'] === 'canary mcp/web_search key'));
  t.false(upstream.asked.some(({ headers }) => 'authorization' in headers));
  t.false(JSON.stringify(await rig.records()).includes('canary'));
});

test('[C11,G2] a wrong option of a kind rejects its entry by the name of the option', async (t) => {
  const rig = await KindRig.open(t, "apiKeyRoute({ name: 'web_search', options: { heeder: 'x' } }),");
  const { reason } = rig.runtime.health().gateway as { reason: string };
  t.is(reason, 'route web_search: options.heeder: there is no such option. Did you mean "header"?');
});
