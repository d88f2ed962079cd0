import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { answerEmpty, type Script, startScripted } from '../../support/scripted-upstream.ts';
import { send } from './raw.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

/** A gateway in front of an upstream that answers tool calls by the script. */
async function inFrontOf(t: ExecutionContext<unknown>, script: Script) {
  const upstream = await startScripted(t, (response, heard, request) =>
    (heard.text.includes('tools/call') ? script : answerEmpty)(response, heard, request),
  );
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url })] });
  const key = await rig.mint({ servers: ['wiki'] });
  const good = { 'content-type': 'application/json', accept: MEDIA, ...admission(key) };
  const url = `${rig.url}/wiki/mcp`;
  const opened = await send(url, { headers: good, body: initialize });
  const headers = { ...good, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  /** Calls a tool and does not read the answer yet. */
  const call = async (): Promise<IncomingMessage> => {
    const request = httpRequest(url, { method: 'POST', headers, agent: false });
    request.end(JSON.stringify(rpc('tools/call', { name: 'wiki-x' })));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  };
  return { rig, upstream, call };
}

for (const type of ['text/event-stream', 'application/json']) {
  test(`[G23] a slow client slows its upstream down instead of filling memory: ${type}`, async (t) => {
    const all = 64 * 1024 * 1024;
    const event = Buffer.from(`data: "${'x'.repeat(64 * 1024 - 10)}"\n\n`);
    let written = 0;
    const { call } = await inFrontOf(t, async (response) => {
      response.writeHead(200, { 'content-type': type });
      while (written < all) {
        written += event.length;
        if (!response.write(event)) await once(response, 'drain');
      }
      response.end();
    });
    const response = await call();
    for (let before = -1; before !== written; ) {
      before = written;
      await after(300); // nothing moves any more
    }
    t.true(written < all / 2, `${written} bytes went into a client that reads none`);
    let read = 0;
    for await (const chunk of response) read += (chunk as Buffer).length;
    t.is(read, written);
    t.true(written >= all);
  });
}

test('[G23] a stop of the runtime ends open streams well, and says so in the records', async (t) => {
  const { rig, call, upstream } = await inFrontOf(t, (response) =>
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: {}\n\n'),
  );
  const response = await call();
  const [first] = (await once(response, 'data')) as [Buffer];
  t.is(String(first), 'data: {}\n\n');
  const ended = once(response, 'end');
  await rig.runtime.stop('test');
  await ended;
  t.true(response.complete);
  const reader = new SqliteReader(rig.dataDir);
  const records = await Array.fromAsync(reader.read());
  reader.close();
  const last = records.filter(({ event }) => event.type === 'CALL_ENDED').at(-1);
  t.like(last?.event, { outcome: 'cut', status: 200 });
  while ((await upstream.connections()) > 0) await after(10);
});
