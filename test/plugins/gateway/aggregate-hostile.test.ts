import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import test from 'ava';
import { credentialFree, overwrite } from '../../../src/plugins/gateway/index.ts';
import { startUpstream } from '../../support/mcp-upstream.ts';
import { type Script, startScripted } from '../../support/scripted-upstream.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

/** An upstream whose tools are this JSON, page after page. */
const listing =
  (tools: string, next?: string, revision = '2025-06-18'): Script =>
  (response, { method, text }) => {
    if (method !== 'POST') return response.writeHead(405).end();
    const { id, method: called } = JSON.parse(text) as { id?: unknown; method?: string };
    if (id === undefined) return response.writeHead(202).end();
    const result =
      called === 'tools/list'
        ? `{"tools":${tools}${next === undefined ? '' : `,"nextCursor":"${next}"`}}`
        : `{"protocolVersion":"${revision}","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}`;
    return response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`);
  };

/** The merged list of tools, as a client without an SDK asks for it. */
async function listed(
  rig: Rig,
  key: string,
): Promise<{ tools: { name: string }[]; _meta?: Record<string, unknown> }> {
  const opened = await rig.post('/mcp/', initialize, admission(key));
  const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  const answer = await rig.post('/mcp/', rpc('tools/list'), { ...admission(key), ...session });
  return ((await answer.json()) as { result: { tools: { name: string }[] } }).result;
}

const nested = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const LARGE = `[{"name":"x","description":"${'x'.repeat(1024 * 1024)}"}]`;

const HOSTILE: readonly (readonly [what: string, script: Script, reason: string | undefined])[] = [
  [
    'a schema that no stack is deep enough for',
    listing(`[{"name":"x","inputSchema":${nested(20_000)}}]`),
    'answers more than can be held',
  ],
  [
    'pages that together are more than a list may be',
    listing(LARGE, 'next'),
    'answers more than can be held',
  ],
  [
    'more tools than a call has arguments',
    listing(`[${'{"name":""},'.repeat(200_000)}{"name":""}]`),
    undefined,
  ],
  [
    'a revision that can be no header',
    listing('[]', undefined, '2025\\r\\nx-smuggled: 1'),
    'names a revision that is none',
  ],
];

for (const [what, script, reason] of HOSTILE) {
  test(`[G12] one server with ${what} is its own trouble: the tools of the others are listed`, async (t) => {
    const [wiki, bad] = [await startUpstream(t), await startScripted(t, script)];
    const rig = await Rig.start(t, {
      routes: [
        credentialFree({ name: 'bad', url: bad.url }),
        credentialFree({ name: 'wiki', url: wiki.url }),
      ],
    });
    const key = await rig.mint({ servers: ['bad', 'wiki'] });
    const { tools, _meta } = await listed(rig, key);
    t.deepEqual(
      tools.map(({ name }) => name).filter((name) => name.startsWith('wiki-')),
      ['wiki-echo', 'wiki-fail'],
    );
    t.deepEqual(_meta?.['holdfast/unavailable'], reason && [{ server: 'bad', reason }]);
  });
}

test('[G12] a server that gives page after page has one deadline for all of them', async (t) => {
  const slow = await startScripted(t, async (response, heard, request) => {
    if (heard.text.includes('tools/list')) await new Promise((resolve) => setTimeout(resolve, 100));
    return listing('[]', 'next')(response, heard, request);
  });
  const rig = await Rig.start(t, {
    aggregateDeadlineMs: 500,
    routes: [credentialFree({ name: 'slow', url: slow.url })],
  });
  const { _meta } = await listed(rig, await rig.mint({ servers: ['slow'] }));
  t.deepEqual(_meta?.['holdfast/unavailable'], [{ server: 'slow', reason: 'does not answer in time' }]);
  t.true(slow.heard.filter(({ text }) => text.includes('tools/list')).length < 10);
});

test('[G19,G12] a server that repeats the gateway’s token in its list of tools is named as missing, and the token is nowhere', async (t) => {
  const token = 'tok_canary_0123456789';
  const tokenFile = join(tempDir(t), 'token');
  writeFileSync(tokenFile, token, { mode: 0o600 });
  const docs = await startScripted(t, listing(JSON.stringify([{ name: token }])));
  const rig = await Rig.start(t, { routes: [overwrite({ name: 'docs', url: docs.url, tokenFile })] });
  const list = await listed(rig, await rig.mint({ servers: ['docs'] }));
  t.deepEqual(list, {
    tools: [],
    _meta: { 'holdfast/unavailable': [{ server: 'docs', reason: 'repeats the credential of the gateway' }] },
  });
});

test('[G23,G12] a stream whose last event has an id that is no ASCII is taken up again, from there where a header can say so', async (t) => {
  const opened: unknown[] = [];
  const taken = Promise.withResolvers<void>();
  const begin = listing('[]');
  const upstream = await startScripted(t, (response, heard, request) => {
    if (heard.method !== 'GET') return begin(response, heard, request);
    const id = ['\u20ac', 'a\u0001b'][opened.push(heard.headers['last-event-id']) - 1];
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (id !== undefined) return response.end(`id: ${id}\ndata: {"jsonrpc":"2.0","method":"x"}\n\n`);
    response.flushHeaders();
    return taken.resolve();
  });
  const clock = new VirtualClock();
  const routes = [credentialFree({ name: 'wiki', url: upstream.url })];
  const rig = await Rig.start(t, { routes }, tempDir(t), clock);
  const key = await rig.mint({ servers: ['wiki'] });
  const { headers } = await rig.post('/mcp/', initialize, admission(key));
  const session = { 'mcp-session-id': headers.get('mcp-session-id') ?? '', accept: 'text/event-stream' };
  const stream = await fetch(`${rig.url}/mcp/`, { headers: { ...admission(key), ...session } });
  for (let over = false; !over; ) {
    await clock.advance(1_000);
    over = await Promise.race([taken.promise.then(() => true), delay(10, false)]);
  }
  await stream.body?.cancel();
  t.deepEqual(opened, [undefined, Buffer.from('\u20ac').toString('latin1'), undefined]);
  t.false(rig.lines.some((line) => line.includes('gateway.call_failed')));
});
