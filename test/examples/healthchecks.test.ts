import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { z } from 'zod';
import { serveOwnModules } from '../../src/core/host/config/load.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import { createRuntime, definePlugin, type UptimeMonitor, UptimeMonitorToken } from '../../src/index.ts';
import { tempDir } from '../support/temp.ts';

serveOwnModules();
const { healthchecks } = await import('../../examples/healthchecks/plugin.ts');

test('[C11] the example adapter takes the place of the uptime monitor: who sends beats does not notice, and no answer shows its key', async (t) => {
  const pings: string[] = [];
  const server = createServer((request, response) => {
    pings.push(`${request.method} ${request.url}`);
    response.writeHead(request.url?.startsWith('/key-1') ? 200 : 404).end(`OK ${request.url}`);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const folder = tempDir(t);
  writeFileSync(join(folder, 'office'), 'key-1\n', { mode: 0o600 });
  writeFileSync(join(folder, 'attic'), 'key-2\n', { mode: 0o600 });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const found = Promise.withResolvers<UptimeMonitor>();
  const sender = definePlugin({
    name: 'sender',
    options: z.strictObject({}),
    requires: [UptimeMonitorToken],
    start: ({ get }) => found.resolve(get(UptimeMonitorToken)),
    register: () => {},
  });
  const plugins = [sender(), healthchecks({ url, folder })].map(({ definition, options }) => ({
    definition,
    options: definition.options.parse(options),
  }));
  const runtime = createRuntime({ plugins, dataDir: tempDir(t), logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test'));
  await runtime.start();
  const monitor = await found.promise;
  t.deepEqual(await monitor.push('office', { status: 'up', msg: 'fine' }), {
    kind: 'delivered',
    status: 200,
    body: 'OK /***',
  });
  t.like(await monitor.pushEvent('office', { status: 'down', msg: 'broken' }), {
    type: 'PUSHED',
    status: 200,
  });
  t.like(await monitor.pushEvent('attic', { status: 'up', msg: '' }), { type: 'PUSH_REFUSED', status: 404 });
  t.like(await monitor.pushEvent('cellar', { status: 'up', msg: '' }), {
    type: 'PUSH_FAILED',
    exitStatus: 3,
  });
  t.deepEqual(pings, ['POST /key-1', 'POST /key-1/fail', 'POST /key-2']);
});
