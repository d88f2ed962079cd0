import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { serveOwnModules } from '../../src/core/host/config/load.ts';
import { Rig } from '../plugins/gateway/rig.ts';
import { tempDir } from '../support/temp.ts';

serveOwnModules();
const { parcelsRoute } = await import('../../examples/parcels/plugin.ts');

test('[C11] the example route asks a REST API with its key, which is nowhere else, and says what went wrong', async (t) => {
  const keys: (string | undefined)[] = [];
  const server = createServer(({ url, headers }, response) => {
    keys.push(String(headers['x-api-key']));
    const known = { id: 'ABC123', status: 'in the van', due: 'today', secret: 'not for agents' };
    const body = url === '/parcels' ? { parcels: [known] } : url === '/parcels/ABC123' ? known : undefined;
    response
      .writeHead(body ? 200 : 404, { 'content-type': 'application/json' })
      .end(JSON.stringify(body ?? {}));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const keyFile = join(tempDir(t), 'key');
  writeFileSync(keyFile, 'canary-key-42\n', { mode: 0o600 });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const rig = await Rig.start(t, {}, undefined, undefined, [parcelsRoute({ url, keyFile })]);
  const client = await rig.connect(t, 'parcels', await rig.mint({ servers: ['parcels'] }));
  const call = async (name: string, args: Record<string, unknown> = {}) =>
    (await client.callTool({ name: `parcels-${name}`, arguments: args })) as any;
  const listed = await call('list');
  t.deepEqual(listed.structuredContent, { parcels: [{ id: 'ABC123', status: 'in the van', due: 'today' }] });
  t.like((await call('track', { id: 'ABC123' })).structuredContent, { status: 'in the van' });
  const unknown = await call('track', { id: 'XYZ999' });
  t.true(unknown.isError);
  t.regex(unknown.content[0].text, /^HF_PARCELS_ANSWER: The parcel service answered 404/);
  t.true((await call('track', { id: '../../etc' })).isError, 'an id is no path');
  t.deepEqual([...new Set(keys)], ['canary-key-42']);
  t.deepEqual(await rig.traces('canary-key-42'), []);
});
