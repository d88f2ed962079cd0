import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import type { FastifyInstance, RouteOptions } from 'fastify';
import { Agent, request } from 'undici';
import { resolveConfig } from '../../src/core/host/config/resolve.ts';
import { isWrite } from '../../src/core/host/http/admission.ts';
import { openFilesLimit } from '../../src/core/host/http/connection-limit.ts';
import { createLogger } from '../../src/core/host/logging/logger.ts';
import { createRuntime } from '../../src/core/host/runtime/runtime.ts';
import { collector } from '../../src/plugins/collector/index.ts';
import { consolePlugin } from '../../src/plugins/console/index.ts';
import { credentialFree, gateway } from '../../src/plugins/gateway/index.ts';
import { memoryStore } from '../../src/plugins/memory-store/index.ts';
import { otlp } from '../../src/plugins/otlp/index.ts';
import { router } from '../../src/plugins/router/index.ts';
import { uptimeMonitor } from '../../src/plugins/uptime-monitor/index.ts';
import { tempDir } from '../support/temp.ts';

interface WriteRoute {
  readonly app: FastifyInstance;
  readonly method: string;
  readonly route: RouteOptions;
  /** Of the data folder, for the routes of the control socket. */
  readonly socket: string;
}

/** A page that another program serves on this machine. */
const PAGE = 'http://127.0.0.1:9999';

/** Every plugin that serves HTTP, and each route by which something is written. */
async function startAll(t: ExecutionContext) {
  const writes: WriteRoute[] = [];
  const dataDir = tempDir(t);
  const collect = (message: unknown) => {
    const { fastify: app } = message as { fastify: FastifyInstance };
    app.addHook('onRoute', (route) => {
      for (const method of [route.method].flat())
        if (isWrite(method)) writes.push({ app, method, route, socket: join(dataDir, 'control.sock') });
    });
  };
  subscribe('fastify.initialization', collect);
  t.teardown(() => unsubscribe('fastify.initialization', collect));
  const plugins = [
    router({ port: 0 }),
    memoryStore({ port: 0 }),
    uptimeMonitor({ port: 0 }),
    gateway({ port: 0, probeEveryMs: 0, routes: [credentialFree({ name: 'wiki' })] }),
    collector(),
    otlp({ port: 0, grpcPort: 0 }),
    consolePlugin({ port: 0 }),
  ];
  const runtime = createRuntime({
    plugins: resolveConfig({ plugins }, { env: {} }).plugins,
    dataDir,
    logger: createLogger({ level: 'silent' }),
  });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const secret = (name: string) => readFileSync(join(dataDir, 'secrets', name), 'utf8').trim();
  const keys = (url: string): Record<string, string> =>
    /^\/v1\/(traces|metrics|logs)$/.test(url)
      ? { authorization: secret('otel_ingest_api_key') }
      : { authorization: `Bearer ${secret('master-key')}` };
  return { runtime, writes, keys };
}

async function send(
  { app, method, route, socket }: WriteRoute,
  headers: Record<string, string>,
  body: string,
): Promise<number> {
  const address = app.server.address();
  const path = route.url.replaceAll(/:\w+/g, 'wiki');
  const isSocket = typeof address === 'string';
  const base = isSocket ? 'http://localhost' : `http://127.0.0.1:${address?.port}`;
  const dispatcher = new Agent({ ...(isSocket && { connect: { socketPath: socket } }) });
  try {
    const answer = await request(base + path, { method, headers, body, dispatcher });
    await answer.body.dump();
    return answer.statusCode;
  } finally {
    await dispatcher.destroy();
  }
}

const json = { 'content-type': 'application/json' };
const plain = { 'content-type': 'text/plain' };

test.serial(
  '[C14] no route of any surface takes a write from a page of another origin, or a body that a page may send unasked',
  async (t) => {
    t.timeout(180_000);
    const { writes, keys } = await startAll(t);
    const exceptions = new Set<string>();
    const surfaces = new Set<FastifyInstance>();
    for (const write of writes) {
      const { url, config } = write.route;
      const name = `${write.method} ${url}`;
      const { types = ['application/json'], because } = config?.writes ?? {};
      surfaces.add(write.app);
      for (const headers of [
        { ...json, origin: PAGE },
        { ...json, 'sec-fetch-site': 'cross-site' },
        { ...json, 'sec-fetch-site': 'same-site' },
        { ...plain, origin: PAGE },
      ])
        t.is(
          await send(write, { ...keys(url), ...headers }, '{}'),
          403,
          `${name} ${JSON.stringify(headers)}`,
        );
      if (config?.writes) {
        t.true((because ?? '').length > 20, `${name} says why`);
        exceptions.add(`${url}: ${types}`);
      }
      if (types === 'any') continue;
      const status = await send(write, { ...keys(url), ...plain }, '{}');
      // A handler of the protocol refuses callers first: the master key opens no server.
      if (types === 'handler') t.true([401, 403, 404, 415].includes(status), `${name} ${status}`);
      else t.is(status, 415, name);
    }
    t.is(surfaces.size, 7, 'all write, and the control socket does');
    t.true(writes.length > 25);
    t.deepEqual([...exceptions].toSorted(), [
      '/:server/mcp/: any',
      '/:server/mcp/sse: any',
      '/:server/mcp: handler',
      '/:server/sse: any',
      '/api/push/:token: any',
      '/call-approvals/:id: application/x-www-form-urlencoded',
      '/collections/:collection/snapshots/upload: multipart/form-data',
      '/mcp/: handler',
      '/mcp/sse: handler',
      '/mcp: any',
      '/sse: any',
      '/v1/config/apply_current_config: application/json,application/x-www-form-urlencoded',
      '/v1/logs: application/json,application/x-protobuf',
      '/v1/metrics: application/json,application/x-protobuf',
      '/v1/traces: application/json,application/x-protobuf',
    ]);
  },
);

test.serial(
  '[C14] a page on another local port deletes no points, uploads no snapshot and reapplies no config; a client without a browser does',
  async (t) => {
    t.timeout(180_000);
    const { runtime } = await startAll(t);
    const store = runtime.surfaces.memory?.url ?? '';
    const api = runtime.surfaces.router?.url ?? '';
    const call = async (url: string, method: string, headers: Record<string, string>, body?: string) => {
      const answer = await request(url, { method, headers, ...(body !== undefined && { body }) });
      return { status: answer.statusCode, body: await answer.body.text() };
    };
    const created = JSON.stringify({ vectors: { size: 2, distance: 'Cosine' } });
    t.is((await call(`${store}/collections/x`, 'PUT', json, created)).status, 200);
    const points = JSON.stringify({ points: [{ id: 1, vector: [1, 0] }] });
    t.is((await call(`${store}/collections/x/points`, 'PUT', json, points)).status, 200);
    const count = async () => (await call(`${store}/collections/x/points/count`, 'POST', json, '{}')).body;

    const page = { ...plain, origin: PAGE };
    const deletion = await call(`${store}/collections/x/points/delete`, 'POST', page, '{"points":[1]}');
    t.is(deletion.status, 403);
    t.is(JSON.parse(deletion.body).code, 'HF_HTTP_ORIGIN');
    const unnamed = await call(`${store}/collections/x/points/delete`, 'POST', plain, '{"points":[1]}');
    t.is(unnamed.status, 415);
    t.is(JSON.parse(unnamed.body).code, 'HF_HTTP_MEDIA_TYPE');
    t.regex(await count(), /"count":1/);
    const form = { 'content-type': 'multipart/form-data; boundary=b', origin: PAGE };
    const part = '--b\r\ncontent-disposition: form-data; name="snapshot"; filename="a"\r\n\r\nx\r\n--b--\r\n';
    t.is((await call(`${store}/collections/x/snapshots/upload`, 'POST', form, part)).status, 403);
    const apply = `${api}/v1/config/apply_current_config`;
    t.is((await call(apply, 'POST', page, '{}')).status, 403);
    t.is((await call(apply, 'POST', { 'sec-fetch-site': 'cross-site' })).status, 403);
    t.is((await call(apply, 'POST', plain, '{}')).status, 415);

    t.is((await call(apply, 'POST', {})).status, 200, 'curl -X POST');
    const curl = { 'content-type': 'application/x-www-form-urlencoded' };
    t.is((await call(apply, 'POST', curl, '{}')).status, 200, "curl -d '{}'");
    t.is(
      (await call(apply, 'POST', { ...json, origin: api, 'sec-fetch-site': 'same-origin' }, '{}')).status,
      200,
    );
    t.is((await call(`${store}/collections/x/points/delete`, 'POST', json, '{"points":[1]}')).status, 200);
    t.regex(await count(), /"count":0/);
  },
);

test.serial(
  '[C14] no surface may take the connections of another, and the console has its own',
  async (t) => {
    t.timeout(180_000);
    const limits: (number | undefined)[] = [];
    const collect = (message: unknown) => {
      const { fastify: app } = message as { fastify: FastifyInstance };
      app.addHook('onListen', (done) => {
        if (typeof app.server.address() === 'object') limits.push(app.server.maxConnections);
        done();
      });
    };
    subscribe('fastify.initialization', collect);
    t.teardown(() => unsubscribe('fastify.initialization', collect));
    await startAll(t);
    t.is(limits.length, 6);
    t.true(limits.every((limit) => limit !== undefined && limit > 0));
    const sum = limits.reduce<number>((all, limit) => all + (limit ?? Number.POSITIVE_INFINITY), 0);
    t.true(sum < openFilesLimit());
  },
);
