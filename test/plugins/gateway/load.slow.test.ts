import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as after } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import test from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { answerEmpty, startScripted } from '../../support/scripted-upstream.ts';
import { send } from './raw.ts';
import { admission, initialize, MEDIA, Rig, rpc } from './rig.ts';

const STREAMS = 1_000;
/** A stream leaves nothing behind; this is the noise of a heap, bytes for each. */
const NOISE = 2_048;

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

async function heap(): Promise<number> {
  await after(100);
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

test(`[G23] ${STREAMS} streams at once each get their event, and leave no memory behind when they close`, async (t) => {
  t.timeout(180_000);
  const open = new Set<ServerResponse>();
  const upstream = await startScripted(t, (response, heard, request) => {
    if (!heard.text.includes('tools/call')) return answerEmpty(response, heard, request);
    heardCount += 1;
    open.add(response);
    response.once('close', () => open.delete(response));
    upstream.heard.length = 0;
    return response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  });
  let heardCount = 0;
  const rig = await Rig.start(t, { routes: [credentialFree({ name: 'wiki', url: upstream.url })] });
  const key = await rig.mint({ servers: ['wiki'] });
  const good = { 'content-type': 'application/json', accept: MEDIA, ...admission(key) };
  const url = `${rig.url}/wiki/mcp`;
  const opened = await send(url, { headers: good, body: initialize });
  const headers = { ...good, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
  const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });
  t.teardown(() => agent.destroy());

  const stream = async (): Promise<IncomingMessage> => {
    const request = httpRequest(url, { method: 'POST', headers, agent });
    request.end(JSON.stringify(rpc('tools/call', { name: 'wiki-x' })));
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return response;
  };
  const round = async (): Promise<void> => {
    const responses = await Promise.all(Array.from({ length: STREAMS }, stream));
    t.is(open.size, STREAMS);
    const heard = responses.map((response) => once(response, 'data'));
    for (const response of open) response.write('data: {"to":"all"}\n\n');
    for (const [chunk] of await Promise.all(heard)) t.is(String(chunk), 'data: {"to":"all"}\n\n');
    for (const response of responses) response.destroy();
    while (open.size > 0) await after(20);
  };
  await round(); // warms up: code, pools, connections
  const before = await heap();
  await round();
  const grown = (await heap()) - before;
  t.true(grown < STREAMS * NOISE, `${Math.round(grown / 1024)} KiB grown`);
  t.is(heardCount, 2 * STREAMS);
});
