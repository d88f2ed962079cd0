/** The baseline: a reverse proxy of `undici.request` and a pipe that looks at nothing. Its own process. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { Agent } from 'undici';
import { tellUsage } from './usage.ts';

const agent = new Agent({ bodyTimeout: 0 });
const { origin, pathname } = new URL(process.argv[2] ?? '');

const server = createServer(async (request, response) => {
  const answer = await agent.request({
    origin,
    path: pathname,
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: request.headers.accept },
    body: request,
  });
  response.writeHead(answer.statusCode, answer.headers);
  pipeline(answer.body, response, () => {});
});
// The upstream's, because the header `keep-alive: timeout=60` is passed on with the others: after Node's own 5 s a client
// that relies on the header may send into a connection that is being closed.
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
});
tellUsage();
