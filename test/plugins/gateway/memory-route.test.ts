import test, { type ExecutionContext } from 'ava';
import { relay } from '../../../src/plugins/gateway/index.ts';
import { readRouteEntries } from '../../../src/plugins/gateway/routes/entries.ts';
import { memory } from '../../../src/plugins/memory/index.ts';
import { memoryStore } from '../../../src/plugins/memory-store/index.ts';
import { Rig } from './rig.ts';

const entry = relay({ name: 'memory', audience: 'mcp-public', callbackPort: 51_338 });

async function open(t: ExecutionContext) {
  const rig = await Rig.start(t, { routes: [entry] }, undefined, undefined, [
    memoryStore({ port: 0 }),
    memory({ vectorSize: 4 }),
  ]);
  const client = await rig.connect(t, 'memory', await rig.mint({ servers: ['memory'] }));
  const call = async (name: string, args: object = {}) => {
    const result = (await client.callTool({ name: `memory-${name}`, arguments: { ...args } })) as any;
    return { data: result.structuredContent, isError: result.isError === true, text: result.content[0].text };
  };
  return { rig, client, call, store: rig.runtime.surfaces['memory-store']?.url ?? '' };
}

const documents = ({ data }: { data: any }) => data.notes.map(({ document }: any) => document);

test('[G1] without an upstream the route memory keeps notes in the store of this process, with the key alone', async (t) => {
  const { client, call } = await open(t);
  const { tools } = await client.listTools();
  const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
  t.like(hints['memory-find'], { readOnlyHint: true });
  t.like(hints['memory-list'], { readOnlyHint: true });
  t.like(hints['memory-forget'], { readOnlyHint: false, destructiveHint: true });
  t.deepEqual(documents(await call('find', { query: 'anything' })), [], 'there is no collection yet');
  const first = await call('store', {
    document: 'The office router stands in the cellar.',
    metadata: { by: 'ann' },
  });
  const second = await call('store', { document: 'The cellar key hangs in the kitchen.' });
  t.deepEqual(documents(await call('find', { query: 'cellar router' })), [
    'The office router stands in the cellar.',
  ]);
  t.is(documents(await call('find', { query: 'cellar' })).length, 2);
  t.deepEqual(documents(await call('find', { query: 'kitch*' })), ['The cellar key hangs in the kitchen.']);
  t.deepEqual(documents(await call('find', { query: 'kitch' })), []);
  t.like(await call('find', { query: '"' }), { isError: false }, 'what a caller types is no operator');
  t.like((await call('find', { query: 'cellar OR NOT' })).data, { notes: [] });

  const replaced = await call('store', { id: second.data.id, document: 'The cellar key is with ann.' });
  t.like(replaced.data, { id: second.data.id, replaced: true });
  t.deepEqual(documents(await call('find', { query: 'key' })), ['The cellar key is with ann.']);
  t.deepEqual((await call('forget', { ids: [first.data.id] })).data, { forgotten: [first.data.id] });
  t.deepEqual((await call('forget', { ids: [first.data.id] })).data, { forgotten: [] });
  t.deepEqual(documents(await call('find', { query: 'router' })), []);
});

test('[G1] notes are listed by pages, and found by vectors where the caller has some; a wrong size is the error of the tool', async (t) => {
  const { call } = await open(t);
  for (let number = 1; number <= 5; number += 1)
    await call('store', { id: number, document: `note ${number}`, vector: [number, 1, 0, 0] });
  const first = (await call('list', { limit: 3 })).data;
  const second = (await call('list', { limit: 3, cursor: first.nextCursor })).data;
  t.deepEqual(
    [...first.notes, ...second.notes].map(({ id }: any) => id),
    [1, 2, 3, 4, 5],
  );
  t.is(first.total, 5);
  t.is(second.nextCursor, undefined);
  t.is(documents(await call('find', { vector: [5, 1, 0, 0], limit: 1 }))[0], 'note 5');
  const wrong = await call('find', { vector: [1, 2] });
  t.true(wrong.isError);
  t.regex(wrong.text, /^HF_MEMORY_REFUSED: /);
});

test('[G1,C2] each call of the route memory may write, so its decision is durable before it is made', async (t) => {
  const { rig, call } = await open(t);
  await call('store', { document: 'x' });
  const calls = (await rig.records()).filter(({ event }) => (event as any).tool === 'memory-store');
  t.is(calls.length, 1);
  t.true(calls.every(({ batched }) => batched === undefined));
});

test('[G8] a relay entry that names an identity provider is not served by a server that checks no tokens', (t) => {
  const contributed = [
    { owner: 'memory', options: {}, value: { name: 'memory', server: () => undefined as never } },
  ];
  const strict = relay({ name: 'memory', authorizationServers: ['https://id.example.net'] });
  const { definitions, rejected } = readRouteEntries([strict], {}, contributed);
  t.deepEqual(definitions, []);
  t.regex(rejected[0]?.reason ?? '', /authorizationServers/);
  const named = readRouteEntries(
    [strict],
    { HOLDFAST_MCP_MEMORY_URL: 'http://127.0.0.1:1/mcp' },
    contributed,
  );
  t.is(named.definitions[0]?.entry.disposition, 'relay', 'an upstream of its own checks them');
});
