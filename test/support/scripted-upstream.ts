import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ExecutionContext } from 'ava';
import { listen } from './mcp-upstream.ts';

/** One request as it came. */
export interface Heard {
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** An upstream that does what no well-behaved server does, on a free port. */
export interface ScriptedUpstream {
  readonly url: string;
  /** Every request whose body came whole, in order. */
  readonly heard: Heard[];
  /** Connections that are open. */
  connections(): Promise<number>;
}

export type Script = (response: ServerResponse, heard: Heard, request: IncomingMessage) => unknown;

export async function startScripted(t: ExecutionContext<unknown>, script: Script): Promise<ScriptedUpstream> {
  const heard: Heard[] = [];
  const http = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return; // the caller left
    }
    const one: Heard = {
      method: request.method ?? '',
      headers: request.headers,
      text: Buffer.concat(chunks).toString('utf8'),
    };
    heard.push(one);
    await script(response, one, request);
  });
  await listen(http);
  t.teardown(async () => {
    http.closeAllConnections();
    await new Promise((done) => http.close(done));
  });
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    heard,
    connections: () =>
      new Promise((resolve, reject) =>
        http.getConnections((error, count) => (error ? reject(error) : resolve(count))),
      ),
  };
}

/** A JSON-RPC result for the request that was heard. */
export function resultFor({ text }: Heard, result: unknown): string {
  const { id } = JSON.parse(text) as { id?: unknown };
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

/** Answers every message with an empty result, as JSON, and has no stream to offer. */
export const answerEmpty: Script = (response, heard) => {
  if (heard.method !== 'POST') return response.writeHead(405, { allow: 'POST' }).end();
  return response.writeHead(200, { 'content-type': 'application/json' }).end(resultFor(heard, {}));
};
