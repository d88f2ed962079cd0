import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  fromJsonSchema,
  type McpHttpHandler,
  McpServer,
} from '@modelcontextprotocol/server';
import type { ExecutionContext } from 'ava';
import { listen, type ReceivedRequest } from './mcp-upstream.ts';

export interface StatelessUpstream {
  readonly url: string;
  readonly asked: ReceivedRequest[];
  readonly handler: McpHttpHandler;
}

/** A real MCP server of revision 2026-07-28 alone, made with the official SDK, on a free port. */
export async function startStateless(t: ExecutionContext<unknown>): Promise<StatelessUpstream> {
  const handler = createMcpHandler(toolServer, { legacy: 'reject' });
  const answer = toNodeHandler(handler);
  const asked: ReceivedRequest[] = [];
  const http = createServer((request, response) => {
    asked.push({ method: request.method ?? '', headers: request.headers });
    void answer(request as never, response); // its declarations do not hold under exactOptionalPropertyTypes
  });
  await listen(http);
  t.teardown(async () => {
    await handler.close();
    http.closeAllConnections();
    await new Promise((done) => http.close(done));
  });
  return { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`, asked, handler };
}

function toolServer(): McpServer {
  const server = new McpServer(
    { name: 'stateless', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true } } },
  );
  const region = { type: 'string', 'x-mcp-header': 'Region' };
  const inputSchema = fromJsonSchema<{ region: string }>({ type: 'object', properties: { region } });
  server.registerTool('where', { inputSchema }, async ({ region: given }) => ({
    content: [{ type: 'text', text: given }],
  }));
  return server;
}
