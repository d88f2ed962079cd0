import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';

/** The server that the benchmark of routes reaches in three ways. */
export function echoServer(): McpServer {
  const server = new McpServer({ name: 'echo', version: '1' });
  server.registerTool('echo', { inputSchema: z.object({ text: z.string() }) }, async ({ text }) => ({
    content: [{ type: 'text', text }],
  }));
  return server;
}
