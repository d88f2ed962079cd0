import { once } from 'node:events';
import { connect } from 'node:net';
import test from 'ava';
import { actorRef } from '../../../src/core/kernel/ids.ts';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { admission, initialize, Rig } from './rig.ts';

const rejected = async (rig: Rig) =>
  (await rig.records()).flatMap(({ event }) =>
    event.type === 'REJECTED' ? [event as { rule?: string; count?: number; path?: string }] : [],
  );

test('[C2] a stranger who goes on and on is recorded to the last request, and does not fill the disk', async (t) => {
  const rig = await Rig.start(t, { routes: [] });
  const url = '/mcp/';
  const before = (await rig.records()).length;
  const guesses = Array.from({ length: 200 }, (_, index) =>
    rig.post(url, initialize, admission(`sk-guess-${index}`)),
  );
  const statuses = new Set((await Promise.all(guesses)).map(({ status }) => status));
  t.deepEqual([...statuses], [401]);
  const records = await rejected(rig);
  t.is(
    records.reduce((sum, { count = 1 }) => sum + count, 0),
    200,
  );
  t.true(records.length < 80, String(records.length));
  const { context } = rig.runtime.services.actors.snapshot(actorRef('gateway.rejections', 'all')) ?? {};
  t.like(context, { counts: { unknown_key: 200 } });
  t.true((await rig.records()).length - before < 200);
  t.like(records.at(-1), { rule: 'unknown_key', path: url });
});

test('who is rejected by another rule, or beside a stranger, does not wait with it', async (t) => {
  const rig = await Rig.start(t, { routes: [] });
  await Promise.all(Array.from({ length: 60 }, () => rig.post('/mcp/', initialize, admission('sk-guess'))));
  t.is((await rig.post('/mcp/', initialize)).status, 401);
  t.deepEqual((await rejected(rig)).at(-1)?.rule, 'no_key');
  t.is((await rejected(rig)).at(-1)?.count, undefined);
});

test('a stranger is answered before its body is read, so that it can have nothing held for it', async (t) => {
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'wiki', url: 'http://127.0.0.1:9/mcp' })],
  });
  const { hostname, port, host } = new URL(rig.url);
  for (const path of ['/wiki/mcp', '/mcp/', '/mcp/sse', '/key/generate', '/key/update']) {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: 4000000\r\n\r\n{`,
    );
    const [first] = (await once(socket, 'data')) as [Buffer];
    t.regex(first.toString(), /^HTTP\/1.1 401 /, path);
    socket.destroy();
  }
  t.is((await rejected(rig)).length, 5);
});
