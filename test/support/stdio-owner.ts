/** A process that starts programs as the gateway does, prints which processes there are, and waits to be killed. */

import { createLogger } from '../../src/core/host/logging/logger.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { StdioServer } from '../../src/plugins/gateway/local/stdio/stdio-server.ts';

const [program = '', folder = ''] = process.argv.slice(2);
const server = new StdioServer({
  name: 'owned',
  command: {
    run: process.execPath,
    args: [program, 'stateless'],
    env: {},
    secrets: {},
    maxProcesses: 8,
    idleMs: 600_000,
    maxMemory: 1024 * 1024 * 1024,
  },
  folder,
  clock: systemClock,
  logger: createLogger({ level: 'silent' }),
  readSecret: async () => '',
});

const _meta = { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' };
const params = { name: 'fork', arguments: { ownGroup: true }, _meta };
const answer = await server.fetch(
  new Request('http://owned.invalid/mcp', {
    method: 'POST',
    headers: { 'mcp-protocol-version': '2026-07-28' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  }),
);
const { result }: any = await answer.json();
process.stdout.write(`${result.content[0].text}\n`);
setInterval(() => {}, 1_000);
