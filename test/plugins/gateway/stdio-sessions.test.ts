import { createRequire } from 'node:module';
import { Client } from '@modelcontextprotocol/client';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import test from 'ava';
import { isAlive, messagesOf, program, said, StdioRig, until } from './stdio-rig.ts';

const EVERYTHING = createRequire(import.meta.url)
  .resolve('@modelcontextprotocol/server-everything/package.json')
  .replace('package.json', 'dist/index.js');

test('the official client uses the everything server, which is a program, by sessions', async (t) => {
  const { server } = new StdioRig(t, { run: process.execPath, args: [EVERYTHING, 'stdio'] });
  const transport = new StreamableHTTPClientTransport(new URL('http://tested.invalid/mcp'), {
    fetch: (url, init) => server.fetch(new Request(url, init)),
  });
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(transport as never);
  t.teardown(() => client.close());
  const { tools } = await client.listTools();
  t.true(tools.length > 5);
  const progress: number[] = [];
  const result = await client.callTool(
    { name: 'trigger-long-running-operation', arguments: { duration: 0.2, steps: 2 } },
    { onprogress: (one) => void progress.push(one.progress) },
  );
  t.regex(JSON.stringify(result.content), /completed/);
  t.deepEqual(progress, [1, 2]);
  t.is(server.facts().processes, 1);
  await transport.terminateSession();
  t.is(server.facts().processes, 0);
});
