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
  return { rig, client, call, store: rig.runtime.surfaces.memory?.url ?? '' };
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

test('[G8] a relay entry without an upstream keeps its identity provider, and without one works with the key alone', (t) => {
  const contributed = [
    { owner: 'memory', options: {}, value: { name: 'memory', server: () => undefined as never } },
  ];
  const strict = relay({
    name: 'memory',
    audience: 'mcp-public',
    authorizationServers: ['https://id.example.net'],
  });
  const dispositionOf = (input: unknown, env = {}) =>
    readRouteEntries([input], env, contributed).definitions[0]?.entry.disposition;
  t.is(dispositionOf(strict), 'relay');
  t.is(dispositionOf(entry), 'credential_free');
  t.is(dispositionOf(entry, { HOLDFAST_MCP_MEMORY_URL: 'http://127.0.0.1:1/mcp' }), 'relay');
});

test('[G1] what a note may hold is bounded, and the refusal says which bound: characters, depth and keys of metadata', async (t) => {
  const { call } = await open(t);
  const nested = (levels: number): object =>
    Array.from({ length: levels - 1 }).reduce<object>((inner) => ({ a: inner }), { a: 1 });
  const keys = (count: number): object =>
    Object.fromEntries(Array.from({ length: count }, (_, number) => [`k${number}`, 1]));
  const metadata = [
    [{ long: 'x'.repeat(40_000) }, /32,?768 characters/],
    [nested(9), /8 levels/],
    [{ list: Array.from({ length: 3_000 }, () => ({})) }, /2,?048 values/],
    [keys(257), /256 keys/],
    [{ parts: [keys(128), keys(128)] }, /256 keys/],
    [{ ['k'.repeat(129)]: 1 }, /128 characters/],
  ] as const;
  for (const [given, reason] of metadata) {
    const { isError, text } = await call('store', { document: 'x', metadata: given });
    t.true(isError, String(reason));
    t.regex(text, reason);
  }
  const others = [
    ['store', { document: 'x'.repeat(100_001) }],
    ['store', { document: '\u0001'.repeat(40_000) }],
    ['store', { document: 'x', tags: ['unknown'] }],
    ['store', { document: 'x', id: 'no-uuid' }],
    ['forget', { ids: Array.from({ length: 101 }, (_, number) => number) }],
    ['list', { cursor: '{' }],
  ] as const;
  for (const [name, args] of others)
    t.true((await call(name, args)).isError, JSON.stringify(args).slice(0, 80));
  t.deepEqual(documents(await call('list')), [], 'nothing of it was kept');
  const most = { ...keys(200), deep: nested(7), text: 'x'.repeat(25_000) };
  t.false((await call('store', { document: 'x'.repeat(100_000), metadata: most })).isError);
});

test('[G1] a page of long notes ends early, and a payload of others that is too long for any answer hides none behind it', async (t) => {
  const { call, store } = await open(t);
  for (const id of [1, 2, 3]) await call('store', { id, document: `${id}${'x'.repeat(90_000)}` });
  const written = await fetch(`${store}/collections/memory/points?wait=true`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      points: [
        { id: 4, vector: [0, 0, 0, 0], payload: { document: '4', metadata: { log: 'y'.repeat(1_000_000) } } },
      ],
    }),
  });
  t.is(written.status, 200);
  await call('store', { id: 5, document: '5' });
  const seen: any[] = [];
  let pages = 0;
  for (let cursor: string | undefined; pages === 0 || cursor !== undefined; pages += 1) {
    const page = await call('list', cursor === undefined ? {} : { cursor });
    t.false(page.isError, page.text.slice(0, 200));
    seen.push(...page.data.notes);
    cursor = page.data.nextCursor;
    t.true(pages < 10);
  }
  t.deepEqual(
    seen.map(({ id }) => id),
    [1, 2, 3, 4, 5],
  );
  t.like(seen[3], { id: 4, cut: true });
  t.true(pages > 1);
  const found = await call('find', { vector: [0, 0, 0, 1], limit: 5 });
  t.false(found.isError, found.text.slice(0, 200));
  t.is(found.data.notes.length + found.data.leftOff, 5);
});
