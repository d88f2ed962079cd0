import { fileURLToPath } from 'node:url';
import test from 'ava';
import { loadConfig } from '../../../src/core/host/config/load.ts';
import { clientConfigCommand } from '../../../src/plugins/gateway/commands/client-config.ts';
import { tempDir } from '../../support/temp.ts';
import { Rig } from './rig.ts';

const cwd = fileURLToPath(new URL('../../../', import.meta.url));

const shipped = async () => {
  const { plugins } = await loadConfig({ cwd, env: {} });
  return plugins.find(({ definition }) => definition.name === 'gateway')!.options as any;
};

test('[G20,G21] the shipped configuration makes ten entries for the CLI client, two of them with a callback port, and eight for the desktop client', async (t) => {
  const command = clientConfigCommand({ ...(await shipped()), publicUrl: 'https://mcp.example.net' });
  const run = async (client: string): Promise<string[]> => {
    const out: string[] = [];
    const context = {
      dataDir: tempDir(t), // nothing runs there
      signal: new AbortController().signal,
      json: false,
      print: (line: string) => out.push(line),
      note: () => undefined,
    };
    await command.run([], { client, scope: 'user' }, context as never);
    return out;
  };
  const cli = await run('cli');
  t.is(cli.length, 10);
  const ports = cli.flatMap((line) => {
    const [, port, name] = /--callback-port (\d+) (\w+) /.exec(line) ?? [];
    return port === undefined ? [] : [`${name} ${port}`];
  });
  t.deepEqual(ports.toSorted(), ['cluster 51337', 'memory 51338']);
  t.true(cli.every((line) => !/authorization/i.test(line)));
  const { mcpServers } = JSON.parse((await run('desktop')).join('\n'));
  t.deepEqual(Object.keys(mcpServers).toSorted(), [
    'columnar_ro',
    'columnar_rw',
    'library_docs',
    'media_gen',
    'repo_wiki',
    'router_ro',
    'web_crawl',
    'web_search',
  ]);
  const { routes } = await shipped();
  const relays = routes.filter(({ disposition }: any) => disposition === 'relay');
  t.deepEqual(
    relays.map(({ name, audience, scopes }: any) => [name, audience, scopes]),
    [
      ['memory', 'mcp-public', undefined],
      ['cluster', '{gateway_url}/cluster/mcp', ['mcp-cluster', 'groups', 'offline_access']],
    ],
  );
  t.deepEqual(
    routes.filter(({ writes }: any) => writes).map(({ name }: any) => name),
    ['columnar_rw'],
  );
});

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
