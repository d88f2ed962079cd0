import test from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { readRouteEntries } from '../../../src/plugins/gateway/routes/entries.ts';
import { RouteTools } from '../../../src/plugins/gateway/routes/tools.ts';
import { greeter } from '../../support/greeter-plugin.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { admission, Rig } from './rig.ts';

const textOf = (result: object) => (result as { content?: { text?: string }[] }).content?.[0]?.text;

const settings = {
  greet: {
    name: 'welcome',
    description: 'Welcomes a guest of the house.',
    defaults: { name: 'guest' },
  },
};

async function open(t: Parameters<typeof Rig.start>[0], toolSettings: object, more: object = {}) {
  const routes = [credentialFree({ name: 'greeter', toolSettings, ...more } as never)];
  const rig = await Rig.start(t, { routes }, undefined, undefined, [greeter()]);
  return { rig, key: await rig.mint({ servers: ['greeter'] }) };
}

test('[G10] a tool is shown and called by the name, the text and the defaults that the operator gave it', async (t) => {
  const { rig, key } = await open(t, settings);
  const client = await rig.connect(t, 'greeter', key);
  const [tool] = (await client.listTools()).tools;
  t.like(tool, { name: 'greeter-welcome', description: 'Welcomes a guest of the house.' });
  t.like(tool?.inputSchema.properties, { name: { default: 'guest' } });
  t.deepEqual(tool?.inputSchema.required ?? [], []);
  t.is(textOf(await client.callTool({ name: 'greeter-welcome', arguments: {} })), 'hello guest');
  t.is(textOf(await client.callTool({ name: 'greeter-welcome', arguments: { name: 'Ada' } })), 'hello Ada');
  t.regex(
    textOf(await client.callTool({ name: 'greeter-greet', arguments: {} })) ?? '',
    /not allowed to call this tool/,
    'its own name is nobody any more',
  );
  const aggregate = await rig.connectTo(t, '/mcp/', admission(key));
  t.deepEqual(
    (await aggregate.listTools()).tools.map(({ name }) => name),
    ['greeter-welcome'],
  );
  t.is(textOf(await aggregate.callTool({ name: 'greeter-welcome', arguments: {} })), 'hello guest');
});

test('[G10] a fixed argument is not shown, and counts whatever the client gives', async (t) => {
  const { rig, key } = await open(t, { greet: { fixed: { name: 'the house' } } }, { prefix: false });
  const client = await rig.connect(t, 'greeter', key);
  const [tool] = (await client.listTools()).tools;
  t.deepEqual(tool?.inputSchema.properties, {});
  t.is(textOf(await client.callTool({ name: 'greet', arguments: { name: 'Eve' } })), 'hello the house');
  const aggregate = await rig.connectTo(t, '/mcp/', admission(key));
  t.is(textOf(await aggregate.callTool({ name: 'greeter-greet', arguments: {} })), 'hello the house');
});

test('[G10] a client can not say another value of a fixed argument in the headers that repeat arguments', async (t) => {
  const upstream = await startUpstream(t);
  const toolSettings = { echo: { fixed: { text: 'ours' } } };
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'repo_wiki', url: upstream.url, toolSettings })],
  });
  const key = await rig.mint({ servers: ['repo_wiki'] });
  const headers = { ...admission(key), 'mcp-param-text': 'theirs' };
  const client = await rig.connectTo(t, '/repo_wiki/mcp', headers);
  t.is(textOf(await client.callTool({ name: 'repo_wiki-echo', arguments: { text: 'theirs' } })), 'ours');
  t.false('mcp-param-text' in (upstream.asked.at(-1)?.headers ?? {}));
  await client.callTool({ name: 'repo_wiki-fail', arguments: {} });
  t.is(upstream.asked.at(-1)?.headers['mcp-param-text'], 'theirs', 'nothing of this tool is fixed');
});

test('[G10] a hidden tool is neither listed nor called, and a key is entitled by the names that clients see', async (t) => {
  const upstream = await startUpstream(t);
  const toolSettings = { fail: { hidden: true }, echo: { name: 'say' } };
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'repo_wiki', url: upstream.url, toolSettings })],
  });
  const key = await rig.mint({ servers: ['repo_wiki'], tools: ['repo_wiki-say'] });
  const client = await rig.connect(t, 'repo_wiki', key);
  t.deepEqual(
    (await client.listTools()).tools.map(({ name }) => name),
    ['repo_wiki-say'],
  );
  t.is(textOf(await client.callTool({ name: 'repo_wiki-say', arguments: { text: 'x' } })), 'x');
  const all = await rig.connect(t, 'repo_wiki', await rig.mint({ servers: ['repo_wiki'] }));
  t.regex(textOf(await all.callTool({ name: 'repo_wiki-fail', arguments: {} })) ?? '', /not allowed/);
});

test('[G2] two tools of one name are refused, by both', (t) => {
  const toolSettings = { one: { name: 'same' }, other: { name: 'same' } };
  const { rejected } = readRouteEntries([credentialFree({ name: 'wiki', toolSettings })], {});
  t.like(rejected, [{ name: 'wiki', reason: 'toolSettings: one and other would both be same' }]);
});

test('[G10] a tool that an upstream adds under the name of a renamed one is not shown in its place', (t) => {
  const tools = new RouteTools({
    name: 'files',
    prefix: true,
    tools: undefined,
    approval: 'none',
    toolSettings: { read: { name: 'open' } },
  });
  const listed = { tools: [{ name: 'read' }, { name: 'open', description: 'Calls go elsewhere.' }] };
  t.deepEqual(tools.show(listed, undefined), { tools: [{ name: 'files-open' }] });
});
