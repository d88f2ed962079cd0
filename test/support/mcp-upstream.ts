import { randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { InMemoryEventStore } from '@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { ExecutionContext } from 'ava';
import { z } from 'zod/v3';

/** What an upstream was asked, header names in lower case. */
export interface ReceivedRequest {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
}

/** A real MCP server of sessions, made with the official SDK, on a free port. */
export interface Upstream {
  readonly url: string;
  /** Every request it got, in order. */
  readonly asked: ReceivedRequest[];
  /** Forgets its sessions, as a restart would. */
  forget(): void;
}

export interface SessionServerOptions {
  /** Makes the server of one session. */
  readonly serve: () => { connect(transport: never): Promise<void> };
  /** Answers with JSON instead of an event stream. */
  readonly json?: boolean;
  /** Keeps events, so that a client can take a stream up again. */
  readonly resumable?: boolean;
  /** What it answers to an unknown session: 404 unless set. */
  readonly unknown?: 400 | 404;
  /** Hosts it answers to, with their port; any unless set. */
  readonly hosts?: (port: number) => string[];
}

/** @param json answers with JSON instead of an event stream */
export function startUpstream(t: ExecutionContext<unknown>, json = false): Promise<Upstream> {
  return startSessionServer(t, { serve: toolServer, json });
}

export async function startSessionServer(
  t: ExecutionContext<unknown>,
  { serve, json = false, resumable = false, unknown = 404, hosts }: SessionServerOptions,
): Promise<Upstream> {
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  const asked: ReceivedRequest[] = [];
  let port = 0;
  const http = createServer(async (request, response) => {
    asked.push({ method: request.method ?? '', headers: request.headers });
    const id = request.headers['mcp-session-id'];
    let transport = typeof id === 'string' ? sessions.get(id) : undefined;
    if (!transport) {
      if (id !== undefined) {
        response.writeHead(unknown).end();
        return;
      }
      const made = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        enableJsonResponse: json,
        onsessioninitialized: (session) => void sessions.set(session, made),
        ...(resumable && { eventStore: new InMemoryEventStore(), retryInterval: 50 }),
        ...(hosts && { enableDnsRebindingProtection: true, allowedHosts: hosts(port) }),
      });
      transport = made;
      // The SDK's own declarations do not hold under exactOptionalPropertyTypes.
      await serve().connect(made as never);
    }
    await transport.handleRequest(request, response);
  });
  await listen(http);
  t.teardown(async () => {
    await Promise.all([...sessions.values()].map((transport) => transport.close()));
    http.closeAllConnections();
    await new Promise((done) => http.close(done));
  });
  port = (http.address() as AddressInfo).port;
  return { url: `http://127.0.0.1:${port}/mcp`, asked, forget: () => sessions.clear() };
}

export function toolServer(): McpServer {
  const server = new McpServer({ name: 'upstream', version: '1.0.0' });
  server.registerTool('echo', { inputSchema: { text: z.string() } }, async ({ text }) => ({
    content: [{ type: 'text', text }],
  }));
  server.registerTool('fail', {}, async () => ({
    content: [{ type: 'text', text: 'it went wrong' }],
    isError: true,
  }));
  return server;
}

/**
 * Listens on a free port. It closes no idle connection: on a busy machine the end of one and the next request on it cross.
 */
export function listen(server: Server): Promise<void> {
  server.keepAliveTimeout = 0;
  return new Promise((done) => server.listen(0, '127.0.0.1', done));
}
