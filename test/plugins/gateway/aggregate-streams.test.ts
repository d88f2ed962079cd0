import test from 'ava';
import { initialize, rpc } from './rig.ts';
import { setUp, until } from './talkers.ts';

test('[G23,G12] what two servers ask at once is answered to the one that asked', async (t) => {
  const { rig, key, client } = await setUp(t);
  await rig.connectTo(t, '/mcp/', key, client);
  t.is(client.getInstructions(), '# docs\nAsk docs.\n\n# wiki\nAsk wiki.');
  const answers = await Promise.all(
    ['wiki', 'docs'].map((server) => client.callTool({ name: `${server}-ask` })),
  );
  t.deepEqual(
    answers.map(({ content }) => content),
    ['wiki', 'docs'].map((server) => [{ type: 'text', text: `answer to ${server}` }]),
  );
});

test('[G18,G23] a server that restarted learns again what its client can, and may ask it', async (t) => {
  const { rig, key, client, wiki } = await setUp(t);
  await rig.connectTo(t, '/mcp/', key, client);
  wiki.forget();
  const { content } = await client.callTool({ name: 'wiki-ask' });
  t.deepEqual(content, [{ type: 'text', text: 'answer to wiki' }]);
});

test('[G23,G12] what all servers say by themselves comes on one stream', async (t) => {
  const { rig, key, client, heard, wiki, docs, sessions } = await setUp(t);
  await rig.connectTo(t, '/mcp/', key, client);
  const listening = () => [wiki, docs].every(({ asked }) => asked.some(({ method }) => method === 'GET'));
  await until(t, 'both streams are open', listening);
  for (const server of ['wiki', 'docs'] as const) {
    await sessions[server].at(-1)?.server.sendLoggingMessage({ level: 'info', data: `from ${server}` });
  }
  await until(t, 'both are heard', () => heard.length === 2);
  t.deepEqual(heard.toSorted(), ['from docs', 'from wiki']);
});

test('[G23] progress comes while a call goes on, and its cancellation reaches its server', async (t) => {
  const { rig, key, client, cancelled } = await setUp(t);
  await rig.connectTo(t, '/mcp/', key, client);
  const abort = new AbortController();
  const progress: number[] = [];
  const call = client.callTool({ name: 'docs-wait' }, undefined, {
    signal: abort.signal,
    onprogress: (one) => {
      progress.push(one.progress);
      abort.abort('enough');
    },
  });
  await t.throwsAsync(call, { message: /enough/ });
  t.deepEqual(progress, [1]);
  await until(t, 'the server stops', () => cancelled.length > 0);
  t.deepEqual(cancelled, ['docs']);
});

test('[G12] prompts bear their server in front, and a resource is found by its own URI', async (t) => {
  const { rig, key, client } = await setUp(t);
  await rig.connectTo(t, '/mcp/', key, client);
  const { prompts } = await client.listPrompts();
  t.deepEqual(
    prompts.map(({ name }) => name),
    ['docs-greet', 'wiki-greet'],
  );
  const { messages } = await client.getPrompt({ name: 'docs-greet' });
  t.like(messages[0]?.content, { text: 'hello from docs' });
  const { resources } = await client.listResources();
  t.deepEqual(
    resources.map(({ uri }) => uri),
    ['docs://page', 'wiki://page'],
  );
  t.like((await client.readResource({ uri: 'docs://page' })).contents[0], { text: 'docs' });
  await t.throwsAsync(client.readResource({ uri: 'none://page' }));
  await t.notThrowsAsync(client.setLoggingLevel('debug'));
});

test('[G23] an answer that no server asked for is refused', async (t) => {
  const { rig, key } = await setUp(t);
  const first = await rig.post('/mcp/', initialize, key);
  const session = { ...key, 'mcp-session-id': first.headers.get('mcp-session-id') ?? '' };
  for (const id of [1, 'wiki', 'wiki:{}', 'other:1']) {
    const answer = await rig.post('/mcp/', { jsonrpc: '2.0', id, result: {} }, session);
    t.is(answer.status, 400, String(id));
  }
  t.is((await rig.post('/mcp/', { jsonrpc: '2.0', id: 'wiki:1', result: {} }, session)).status, 202);
  const unknown = await rig.post('/mcp/', rpc('no/such'), session);
  t.like(await unknown.json(), { error: { code: -32_601 } });
});
