/** An upstream as cheap as one can be, so that what is measured is in front of it. Its own process. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const answers: Readonly<Record<string, Buffer>> = {
  small: result('x'.repeat(200)),
  big: result('x'.repeat(1024 * 1024)),
};

function result(text: string): Buffer {
  return Buffer.from(
    JSON.stringify({ jsonrpc: '2.0', id: 1, result: { content: [{ type: 'text', text }] } }),
  );
}

const initialized = Buffer.from(
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    result: {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'bench', version: '1' },
    },
  }),
);

/** Those that are open, which say something only when they are told to. */
const streams = new Set<ServerResponse>();
process.on('message', ({ say }: { say?: string }) => {
  if (say !== undefined) for (const stream of streams) stream.write(`data: ${say}\n\n`);
  process.send?.({ streams: streams.size });
});

const server = createServer((request, response) => {
  if (request.url?.startsWith('/v1/')) {
    request.resume(); // the gateway's spans and metrics
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    return;
  }
  if (request.method === 'GET') {
    streams.add(response);
    response.once('close', () => streams.delete(response));
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    if (body.includes('"stream"')) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`: hello\n\n`);
      setTimeout(() => response.end(`data: ${answers.small}\n\n`), 50);
      return;
    }
    const answer = body.includes('"initialize"')
      ? initialized
      : body.includes('"big"')
        ? answers.big
        : answers.small;
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': answer?.length,
      'mcp-session-id': 'bench-session',
    });
    response.end(answer);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` });
});
process.on('disconnect', () => process.exit());
