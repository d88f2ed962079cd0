import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { z } from 'zod';
import { type IngestKeys, IngestKeysToken } from '../../../src/core/contracts/ingest-keys.ts';
import { type Telemetry, TelemetryToken } from '../../../src/core/contracts/telemetry.ts';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { plaintextHost } from '../../../src/core/host/http/plaintext.ts';
import { identityOf } from '../../../src/core/host/identity.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import { definePlugin } from '../../../src/core/host/plugin/definition.ts';
import { createRuntime } from '../../../src/core/host/runtime/runtime.ts';
import { telemetry } from '../../../src/plugins/telemetry/index.ts';
import { plaintextCheck, telemetryFact, tokenReader } from '../../../src/plugins/telemetry/receiver.ts';
import type { Scope } from '../../support/scope.ts';
import { tempDir } from '../../support/temp.ts';
import { PATIENCE_MS } from '../../support/until.ts';

interface Received {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly text: string;
}

/** A receiver of OTLP over HTTP that keeps what it gets. */
async function receiver(t: Scope) {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const text = Buffer.concat(await request.toArray()).toString('utf8');
    received.push({ path: request.url ?? '', authorization: request.headers.authorization, text });
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  t.teardown(() => server.close());
  return { received, endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function started(t: Scope, options: Parameters<typeof telemetry>[0], keys?: IngestKeys) {
  let provided: Telemetry | undefined;
  const consumer = definePlugin({
    name: 'consumer',
    options: z.strictObject({}),
    requires: [TelemetryToken],
    start(services) {
      provided = services.get(TelemetryToken);
    },
    register() {},
  });
  const provider = definePlugin({
    name: 'keys',
    options: z.strictObject({}),
    provides: [IngestKeysToken],
    register: (context) => context.provide(IngestKeysToken, () => keys as IngestKeys),
  });
  const entries = [consumer(), telemetry(options), ...(keys ? [provider()] : [])];
  const { plugins } = resolveConfig({ plugins: entries }, { env: {} });
  const dir = tempDir(t);
  const runtime = createRuntime({ plugins, dataDir: dir, logger: createLogger({ level: 'silent' }) });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  return { runtime, dir, provided: provided as unknown as Telemetry };
}

function endSpan(provided: Telemetry, name: string): void {
  provided.tracer('a.scope').startSpan(name).end();
}

test('[O24] without an endpoint nothing is enabled', async (t) => {
  const { provided } = await started(t, {});
  t.false(provided.enabled);
});

test('[O24,O9] spans, metrics of the process and a heartbeat go out with the key as it is at that moment', async (t) => {
  const { received, endpoint } = await receiver(t);
  let key = randomUUID() as string;
  const keys = {
    judge: () => ({ kind: 'unknown' }),
    current: async () => key,
    known: () => [],
  } as IngestKeys;
  const { runtime, provided } = await started(t, { endpoint, everyMs: 60_000 }, keys);
  t.true(provided.enabled);
  key = randomUUID();
  endSpan(provided, 'a span');
  provided.meter('a.scope').createCounter('a.counter').add(3);
  await runtime.stop('test');
  t.true(received.some(({ path, text }) => path === '/v1/traces' && text.includes('"a span"')));
  const metrics = received.filter(({ path }) => path === '/v1/metrics').map(({ text }) => text);
  for (const name of [
    'a.counter',
    'nodejs.eventloop.delay.p99',
    'v8js.memory.heap.used',
    'process.memory.usage',
    'holdfast.log.queued',
    'router.diag.heartbeat',
  ]) {
    t.true(
      metrics.some((text) => text.includes(`"${name}"`)),
      name,
    );
  }
  t.deepEqual([...new Set(received.map(({ authorization }) => authorization))], [key]);
});

test('[R28] every series and span names its host and its instance, by the data folder unless the standard variable says otherwise', async (t) => {
  const { received, endpoint } = await receiver(t);
  const { runtime, dir, provided } = await started(t, { endpoint, everyMs: 60_000 });
  endSpan(provided, 'a span');
  await runtime.stop('test');
  t.deepEqual([...new Set(received.map(({ path }) => path))].toSorted(), ['/v1/metrics', '/v1/traces']);
  for (const { path, text } of received) {
    const body = JSON.parse(text);
    const resources: any[] = body.resourceMetrics ?? body.resourceSpans;
    t.true(resources.length > 0);
    for (const { resource } of resources) {
      const named = Object.fromEntries(
        resource.attributes.map(({ key, value }: any) => [key, value.stringValue]),
      );
      t.like(named, { 'host.name': hostname(), 'service.instance.id': `${hostname()}:${dir}` }, path);
    }
  }
  const named = {
    OTEL_RESOURCE_ATTRIBUTES: 'a=b, host.name=edge%201,service.instance.id=ula=1,nothing,=x,broken=',
  };
  t.deepEqual(identityOf('/data', named), { host: 'edge 1', instance: 'ula=1' });
  t.deepEqual(identityOf('/data', { OTEL_RESOURCE_ATTRIBUTES: 'host.name=50%' }), {
    host: '50%',
    instance: '50%:/data',
  });
});

test('[O24] our own receiver is found when it listens, and until then nothing fails', async (t) => {
  const { received, endpoint } = await receiver(t);
  const { runtime, dir, provided } = await started(t, { endpoint: 'own', everyMs: 100 });
  endSpan(provided, 'too early');
  await new Promise((done) => setTimeout(done, 250));
  const file = {
    pid: process.pid,
    startedAt: new Date().toISOString(),
    version: '0',
    surfaces: { otlpHttp: { url: endpoint } },
  };
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'runtime.json'), JSON.stringify(file));
  endSpan(provided, 'in time');
  const end = performance.now() + PATIENCE_MS;
  while (!received.some(({ text }) => text.includes('in time')) && performance.now() < end) {
    await new Promise((done) => setTimeout(done, 10));
  }
  t.true(received.some(({ text }) => text.includes('in time')));
  await runtime.stop('test');
});

test('[O26] the key known here goes to no other machine by itself, a file of its own does', async (t) => {
  const keys = { current: async () => 'ours' } as IngestKeys;
  const file = join(tempDir(t), 'token');
  writeFileSync(file, 'theirs\n', { mode: 0o600 });
  t.is(await tokenReader(undefined, 'http://127.0.0.1:4318', keys)(), 'ours');
  t.is(await tokenReader(undefined, 'http://[::1]:4318', keys)(), 'ours');
  t.is(await tokenReader(undefined, 'own', keys)(), 'ours');
  t.is(await tokenReader(undefined, 'https://collector.example', keys)(), undefined);
  const read = tokenReader(file, 'https://collector.example', keys);
  t.is(await read(), 'theirs');
  writeFileSync(file, 'rotated\n');
  t.is(await read(), 'rotated');
});

test('[O26] plaintext that leaves the host is flagged with the gateway as the remedy', (t) => {
  t.is(plaintextHost('http://127.0.0.1:4318'), undefined);
  t.is(plaintextHost('http://[::1]:4318'), undefined);
  t.is(plaintextHost('https://gateway.example'), undefined);
  t.is(plaintextHost('http://u:p@10.0.0.7:4318/x'), '10.0.0.7:4318');
  const check = (endpoint: string, env: NodeJS.ProcessEnv = {}) =>
    plaintextCheck({ running: { surfaces: {}, facts: { telemetry: telemetryFact(endpoint, env) } } });
  t.is(check('own').state, 'ok');
  const flagged = check('http://10.0.0.7:4318', {
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://u:p@edge.example',
  });
  t.is(flagged.state, 'warn');
  t.regex(
    flagged.found,
    /telemetry plugin to 10\.0\.0\.7:4318, OTEL_EXPORTER_OTLP_METRICS_ENDPOINT to edge\.example/,
  );
  t.regex(flagged.remedy ?? '', /OTLP gateway, port 443/);
});
