/** A program with a server of the official SDK, which speaks the stateless revision and the earlier ones. */
import { setTimeout as after } from 'node:timers/promises';
import { fromJsonSchema, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

serveStdio(() => {
  const server = new McpServer(
    { name: 'stateless', version: '1.0.0' },
    { capabilities: { tools: { listChanged: true }, logging: {} } },
  );
  const inputSchema = fromJsonSchema<{ text: string }>({
    type: 'object',
    properties: { text: { type: 'string' } },
  });
  server.registerTool('echo', { inputSchema }, async ({ text }, { mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken;
    if (progressToken !== undefined) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
    }
    return { content: [{ type: 'text', text }] };
  });
  server.registerTool('change', {}, async () => {
    server.sendToolListChanged();
    return { content: [] };
  });
  let left = 0;
  server.registerTool('wait', {}, async ({ mcpReq }) => {
    await after(600_000, undefined, { signal: mcpReq.signal, ref: false }).catch(() => {
      left += 1;
    });
    return { content: [] };
  });
  server.registerTool('left', {}, async () => ({ content: [{ type: 'text', text: String(left) }] }));
  return server;
});
