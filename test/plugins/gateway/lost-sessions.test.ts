import test from 'ava';
import { credentialFree } from '../../../src/plugins/gateway/index.ts';
import { startSessionServer, toolServer } from '../../support/mcp-upstream.ts';
import { admission, initialize, Rig, rpc } from './rig.ts';

for (const unknown of [404, 400] as const) {
  test(`[G18] with reinitialise a session that its upstream has lost (${unknown}) is begun again, and the client does not notice`, async (t) => {
    const upstream = await startSessionServer(t, { serve: toolServer, unknown });
    const rig = await Rig.start(t, {
      routes: [
        credentialFree({ name: 'wiki', url: upstream.url, reinitialise: true }),
        credentialFree({ name: 'plain', url: upstream.url }),
      ],
    });
    const key = await rig.mint({ servers: ['wiki', 'plain'] });
    const [wiki, plain] = [await rig.connect(t, 'wiki', key), await rig.connect(t, 'plain', key)];
    for (let turn = 0; turn < 2; turn += 1) {
      upstream.forget();
      const calls = Array.from({ length: 4 }, () =>
        wiki.callTool({ name: 'wiki-echo', arguments: { text: 'again' } }),
      );
      for (const { content } of await Promise.all(calls)) {
        t.deepEqual(content, [{ type: 'text', text: 'again' }]);
      }
    }
    await t.throwsAsync(plain.listTools(), { message: /404|Session not found/ }, 'it is not so unless set');
  });
}

test('[G18] a session that the client has ended is not begun again', async (t) => {
  const upstream = await startSessionServer(t, { serve: toolServer });
  const rig = await Rig.start(t, {
    routes: [credentialFree({ name: 'wiki', url: upstream.url, reinitialise: true })],
  });
  const key = admission(await rig.mint({ servers: ['wiki'] }));
  const opened = await rig.post('/wiki/mcp', initialize, key);
  const headers = { ...key, 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
  await opened.text();
  upstream.forget();
  t.is((await rig.post('/wiki/mcp', rpc('tools/list'), headers)).status, 200);
  t.is((await fetch(`${rig.url}/wiki/mcp`, { method: 'DELETE', headers })).status, 200);
  upstream.forget();
  t.is((await rig.post('/wiki/mcp', rpc('tools/list'), headers)).status, 404);
});
