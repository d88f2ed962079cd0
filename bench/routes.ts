import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, type McpServerFactory } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { createLogger } from '../src/core/host/logging/logger.ts';
import { createRuntime, definePlugin, mcpRoutes, type PluginEntry } from '../src/index.ts';
import { credentialFree, gateway } from '../src/plugins/gateway/index.ts';
import { keyActor, keyId } from '../src/plugins/gateway/keys/virtual-keys.ts';
import type { Scope } from '../test/support/scope.ts';
import { tempDir } from '../test/support/temp.ts';
import { type Benchmark, median, type Result, withScope } from './measure.ts';
import { echoServer } from './routes/echo-server.ts';

const CALLS = 300;
const ROUNDS = 5;
const MANY = 1_000;
const KEY = 'sk-benchmark-0123456789abcdef';
const REVISION = '2026-07-28';

async function start(scope: Scope, entries: readonly PluginEntry[]) {
  const plugins = entries.map(({ definition, options }) => ({
    definition,
    options: definition.options.parse(options),
  }));
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins, dataDir: tempDir(scope), logger });
  scope.teardown(() => runtime.stop('the benchmark is over'));
  await runtime.start();
  return runtime;
}

/** A server of the same kind at a port. */
async function atPort(scope: Scope, factory: McpServerFactory): Promise<string> {
  const handler = createMcpHandler(factory, { legacy: 'reject' });
  const answer = toNodeHandler(handler);
  const http = createServer((request, response) => void answer(request as never, response));
  await new Promise<void>((done) => http.listen(0, '127.0.0.1', done));
  scope.teardown(async () => {
    await handler.close();
    http.closeAllConnections();
    http.close();
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
}

/** One call of the stateless revision after another. @returns the median, milliseconds */
async function callTime(url: string, route: string): Promise<number> {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      name: `${route}-echo`,
      arguments: { text: 'hello' },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': REVISION,
        'io.modelcontextprotocol/clientCapabilities': {},
        'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
      },
    },
  });
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': REVISION,
    'mcp-method': 'tools/call',
    'mcp-name': `${route}-echo`,
    'x-gateway-api-key': `Bearer ${KEY}`,
  };
  const times: number[] = [];
  for (let call = 0; call < CALLS; call += 1) {
    const began = performance.now();
    const answer = await fetch(`${url}/${route}/mcp`, { method: 'POST', headers, body });
    const text = await answer.text();
    if (!text.includes('hello')) throw new Error(`${route} answered ${answer.status}: ${text.slice(0, 300)}`);
    times.push(performance.now() - began);
  }
  return median(times);
}

async function compared(scope: Scope): Promise<Result[]> {
  const program = fileURLToPath(new URL('./routes/echo-program.ts', import.meta.url));
  const routes = [
    credentialFree({ name: 'http', url: await atPort(scope, echoServer) }),
    credentialFree({ name: 'inside', server: echoServer }),
    credentialFree({ name: 'program', command: { run: process.execPath, args: [program] } }),
  ];
  const runtime = await start(scope, [gateway({ port: 0, probeEveryMs: 0, routes })]);
  const presented = keyId(KEY);
  const terms = { alias: 'bench', servers: ['http', 'inside', 'program'] };
  const event = { type: 'KEY_CREATED', at: Date.now(), presented, terms } as const;
  await runtime.services.actors.send(keyActor, presented, event).durable();
  const url = runtime.surfaces.gateway?.url ?? '';
  const best: Record<string, number> = {};
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const route of ['http', 'inside', 'program'])
      best[route] = Math.min(best[route] ?? Number.POSITIVE_INFINITY, await callTime(url, route));
  }
  const { http = 0, inside = 0, program: stdio = 0 } = best;
  const row = (what: string, ours: number): Result => ({
    what,
    ours: `${ours.toFixed(2)} ms`,
    baseline: `${http.toFixed(2)} ms`,
    ratio: ours / http,
  });
  return [
    row('a call of a server in this process, beside the same server over HTTP', inside),
    row('a call of a program on its standard input and output, beside the same server over HTTP', stdio),
  ];
}

/** So many routes by as many plugins, each with a server in this process. */
async function many(scope: Scope): Promise<Result> {
  const plugins = Array.from({ length: MANY }, (_, number) =>
    definePlugin({
      name: `plugin-${number}`,
      options: z.strictObject({}),
      register: (context) =>
        context.contribute(mcpRoutes, () => ({ name: `route_${number}`, server: echoServer })),
    }),
  );
  const begin = async (entries: readonly PluginEntry[]): Promise<number> => {
    const began = performance.now();
    await start(scope, entries);
    return performance.now() - began;
  };
  const alone = await begin([gateway({ port: 0, probeEveryMs: 0 })]);
  const all = await begin([gateway({ port: 0, probeEveryMs: 0 }), ...plugins.map((plugin) => plugin())]);
  return {
    what: `the start with ${MANY} routes by ${MANY} plugins, beside the start with none`,
    ours: `${(all / 1_000).toFixed(2)} s`,
    baseline: `${(alone / 1_000).toFixed(2)} s`,
    ratio: all / alone,
    target: 'at most 2 s',
    met: all <= 2_000,
  };
}

export const routesBenchmark: Benchmark = {
  name: 'routes',
  summary: 'routes by plugins: calls of servers in this process and of programs, and a start with many',
  run: async () => [...(await withScope(compared)), await withScope(many)],
};
