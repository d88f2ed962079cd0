import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import test, { type ExecutionContext } from 'ava';
import { overwrite } from '../../../src/plugins/gateway/index.ts';
import { router } from '../../../src/plugins/router/index.ts';
import { admission, Rig } from './rig.ts';

const PSK = 'canary-psk-0123456789';

async function open(t: ExecutionContext) {
  const rig = await Rig.start(t, { routes: [overwrite({ name: 'router_ro' })] }, undefined, undefined, [
    router({ port: 0 }),
  ]);
  const client = await rig.connect(t, 'router_ro', await rig.mint({ servers: ['router_ro'] }));
  return { rig, client, api: rig.runtime.surfaces.router?.url ?? '' };
}

const call = async (client: Client, name: string, args: object = {}) => {
  const { structuredContent, isError, content } = (await client.callTool({
    name: `router_ro-${name}`,
    arguments: { ...args },
  })) as any;
  return { data: structuredContent as any, isError: isError === true, text: content[0].text as string };
};

/** Saves the config with one change, as the app does. */
async function save(api: string, change: (config: any) => void): Promise<string> {
  const config: any = await (await fetch(`${api}/v1/config/active`)).json();
  change(config);
  const answer = await fetch(`${api}/v1/config/set`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(config),
  });
  const { ncid } = (await answer.json()) as { ncid: string };
  return ncid;
}

test('[G1,G10] without an upstream the route router_ro reads the router of this process, and every tool says that it only reads', async (t) => {
  const { client } = await open(t);
  const { tools } = await client.listTools();
  t.deepEqual(tools.map(({ name }) => name).sort(), [
    'router_ro-advertisements',
    'router_ro-config',
    'router_ro-diff',
    'router_ro-explain',
    'router_ro-history',
    'router_ro-legs',
    'router_ro-pending_transaction',
  ]);
  t.true(tools.every(({ annotations, outputSchema }) => annotations?.readOnlyHint === true && outputSchema));
  const { data } = await call(client, 'legs');
  t.true(data.legs.length > 1 && data.legs.every(({ intf }: any) => typeof intf === 'string'));
  const [one, other] = data.legs.filter(({ ipv6 }: any) => ipv6.length > 0);
  const bare = (address: string) => address.split('/')[0];
  const explained = await call(client, 'explain', { from: bare(one.ipv6[0]), to: bare(other.ipv6[0]) });
  t.true(explained.data.steps.length > 0, explained.text);
  t.true((await call(client, 'advertisements')).data.legs.length > 0);
  t.deepEqual((await call(client, 'pending_transaction')).data, { pending: false });
});

test('[G19,R13,R31] history and diff show what a save changed, by pages, and no secret of the config', async (t) => {
  const { rig, client, api } = await open(t);
  for (let round = 0; round < 3; round += 1) {
    await save(api, (config) => {
      const [vlan] = Object.values(config.interface.vlan) as any[];
      vlan.meta.name = `Leg ${round}`;
      vlan.psk = `${PSK}-${round}`;
    });
  }
  const first = (await call(client, 'history', { limit: 2 })).data;
  t.is(first.entries.length, 2);
  const second = (await call(client, 'history', { limit: 2, cursor: first.nextCursor })).data;
  t.deepEqual(
    second.entries.filter(({ ncid }: any) => first.entries.some((entry: any) => entry.ncid === ncid)),
    [],
  );
  const { changes } = (await call(client, 'diff', { from: '2', to: '1' })).data;
  t.true(changes.some(({ path, after }: any) => path.endsWith('meta.name') && after === '"Leg 2"'));
  t.true(changes.some(({ path, after }: any) => path.endsWith('psk') && /^secret /.test(after)));
  const whole = await call(client, 'config');
  const part = await call(client, 'config', { path: '/interface/vlan' });
  t.deepEqual(part.data.config, whole.data.config.interface.vlan);
  t.is((await call(client, 'config', { path: '/nowhere' })).data.found, false);
  const { contents } = await client.readResource({ uri: 'router://config' });
  const seen = JSON.stringify([first, second, changes, whole.data, part.data, contents]);
  t.false(seen.includes('canary'));
  t.deepEqual(await rig.traces(PSK), []);
});

test('[G1] what the router refuses is the error of the tool, with its remedy', async (t) => {
  const { client } = await open(t);
  const { isError, text } = await call(client, 'diff', { from: 'ffffffff' });
  t.true(isError);
  t.regex(text, /^HF_ROUTER_ENTRY: /);
});

test('[G1,G17] nothing can be written through router_ro: no tool takes a config, and the aggregate shows the same tools', async (t) => {
  const { rig } = await open(t);
  const client = await rig.connectTo(t, '/mcp/', admission(await rig.mint({ servers: ['router_ro'] })));
  const { tools } = await client.listTools();
  t.is(tools.length, 7);
  const fields = tools.flatMap(({ inputSchema }) => Object.keys(inputSchema.properties ?? {}));
  t.deepEqual([...new Set(fields)].sort(), ['cursor', 'from', 'limit', 'path', 'to']);
});
