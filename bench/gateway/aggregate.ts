import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import { createRuntime, type Runtime } from '../../src/index.ts';
import { credentialFree, gateway } from '../../src/plugins/gateway/index.ts';
import { keyActor, keyId } from '../../src/plugins/gateway/keys/virtual-keys.ts';
import type { Scope } from '../../test/support/scope.ts';
import { median, type Result, withScope } from '../measure.ts';
import { KEY, session } from './session.ts';

const ANSWERING = 9;
const LISTS = 200;
/** So that the first lists, which find the hanging server out, do not take half a minute. */
const DEADLINE_MS = 2_000;
const BUDGET_MS = 50;

const begun = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'bench', version: '1' },
};
const tools = Array.from({ length: 10 }, (_, index) => ({
  name: `tool_${index}`,
  description: 'x'.repeat(200),
  inputSchema: { type: 'object' },
}));

/** `tools/list` of the aggregate over ten servers of which one takes requests and answers none. */
export function aggregateRows(dir: string): Promise<Result[]> {
  return withScope(async (scope) => {
    const names = Array.from({ length: ANSWERING }, (_, index) => `server_${index}`);
    const urls = await Promise.all(names.map(() => serve(scope, answering())));
    const hanging = await serve(
      scope,
      createServer(() => undefined),
    );
    const runtime = await startGateway(dir, [
      ...names.map((name, index) => credentialFree({ name, url: urls[index] ?? '' })),
      credentialFree({ name: 'hanging', url: hanging }),
    ]);
    scope.teardown(() => runtime.stop('benchmark'));
    const url = `${runtime.surfaces.gateway?.url}/mcp/`;
    const headers = await session(url);
    const all = () => list(url, headers);
    const without = () => list(url, { ...headers, 'x-mcp-servers': names.join(',') });
    for (let turn = 0; turn < 20; turn += 1) await all();
    const [ours, healthy]: [number[], number[]] = [[], []];
    for (let turn = 0; turn < LISTS; turn += 1) {
      healthy.push(await without());
      ours.push(await all());
    }
    const [p50, other] = [median(ours), median(healthy)];
    return [
      {
        what: 'aggregate tools/list over 10 servers with one hanging, warm, p50',
        ours: `${p50.toFixed(2)} ms`,
        baseline: `${other.toFixed(2)} ms over the other ${ANSWERING}`,
        ratio: p50 / other,
        target: `< ${BUDGET_MS} ms`,
        met: p50 < BUDGET_MS,
      },
    ];
  });
}

async function list(url: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const began = performance.now();
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' }),
  });
  const { result } = (await answer.json()) as { result?: { tools: readonly unknown[] } };
  const expected = ANSWERING * tools.length;
  if (result?.tools.length !== expected) throw new Error(`${result?.tools.length} of ${expected} tools`);
  return performance.now() - began;
}

function answering(): Server {
  return createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    if (request.method !== 'POST') return response.writeHead(405).end();
    const { id, method } = JSON.parse(Buffer.concat(parts).toString('utf8')) as Record<string, unknown>;
    if (id === undefined) return response.writeHead(202).end();
    const result = method === 'initialize' ? begun : { tools };
    response.writeHead(200, { 'content-type': 'application/json' });
    return response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  });
}

async function serve({ teardown }: Scope, server: Server): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

async function startGateway(
  dir: string,
  routes: readonly ReturnType<typeof credentialFree>[],
): Promise<Runtime> {
  const { definition, options } = gateway({
    port: 0,
    probeEveryMs: 0,
    aggregateDeadlineMs: DEADLINE_MS,
    routes: [...routes],
  });
  const runtime = createRuntime({
    plugins: [{ definition, options: definition.options.parse(options) }],
    dataDir: `${dir}/aggregate`,
    logger: createLogger({ level: 'error' }),
  });
  await runtime.start();
  const presented = keyId(KEY);
  const terms = { alias: 'bench', servers: routes.map(({ name }) => name) };
  await runtime.services.actors
    .send(keyActor, presented, {
      type: 'KEY_CREATED',
      at: Date.now(),
      presented,
      terms,
    })
    .durable();
  return runtime;
}
