import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Scope } from './scope.ts';

/** What a receiver was sent. */
export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export type Behaviour = (answer: ServerResponse, request: Received) => void;

export interface Webhook {
  /** With a secret in its path, as addresses of webhooks have. */
  readonly url: string;
  readonly received: Received[];
  /** How it answers from now on. */
  behave(how: Behaviour): void;
  /** Its JSON bodies. */
  json(): any[];
}

export const status =
  (code: number, body = '', headers: Record<string, string> = {}): Behaviour =>
  (answer) =>
    answer.writeHead(code, headers).end(body);

/** A receiver of webhooks on a free port, closed with the test. */
export async function webhook(t: Scope, tls?: { key: string; cert: string }): Promise<Webhook> {
  const received: Received[] = [];
  let how: Behaviour = status(200, 'ok');
  const listener = (request: any, answer: ServerResponse) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const seen = { path: request.url, headers: request.headers, body };
      received.push(seen);
      how(answer, seen);
    });
  };
  const server = tls ? createTlsServer(tls, listener) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/hook-canary-4711`,
    received,
    behave: (next) => {
      how = next;
    },
    json: () => received.map(({ body }) => JSON.parse(body)),
  };
}
