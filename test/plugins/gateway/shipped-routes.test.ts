import { fileURLToPath } from 'node:url';
import test from 'ava';
import { loadConfig } from '../../../src/core/host/config/load.ts';
import { Rig } from './rig.ts';

const cwd = fileURLToPath(new URL('../../../', import.meta.url));

test('[G1,G15] the shipped configuration serves ten routes: seven overwrite the credential, two relay it, one has none', async (t) => {
  const { plugins } = await loadConfig({ cwd, env: {} });
  const gateway = plugins.find(({ definition }) => definition.name === 'gateway');
  const rig = await Rig.start(t, { routes: (gateway!.options as any).routes });
  const { body } = await rig.admin('GET', '/v1/mcp/server');
  const rows = body.map(({ server_name, url, auth_type, oauth_passthrough }: any) => [
    server_name,
    new URL(url).pathname,
    auth_type,
    oauth_passthrough,
  ]);
  const overwritten = [
    'library_docs',
    'web_search',
    'web_crawl',
    'media_gen',
    'router_ro',
    'columnar_ro',
    'columnar_rw',
  ];
  const expected = [
    ...overwritten.map((name) => [name, `/${name}/mcp`, 'bearer_token', false]),
    ['memory', '/memory/mcp', 'none', true],
    ['cluster', '/cluster/mcp', 'none', true],
    ['repo_wiki', '/repo_wiki/mcp', 'none', false],
  ];
  t.deepEqual(rows.toSorted(), expected.toSorted());
});
