import { spawn } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:http2';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { resolveConfig } from '../../../src/core/host/config/resolve.ts';
import { createLogger } from '../../../src/core/host/logging/logger.ts';
import type { LogRecord } from '../../../src/core/kernel/log/record.ts';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { createRuntime } from '../../../src/index.ts';
import { otlp } from '../../../src/plugins/otlp/index.ts';
import { tempDir } from '../../support/temp.ts';
import { FailingDatabase } from './database.ts';
import { callGrpc } from './grpc-client.ts';
import { database, nanos, post, type Receiving, receive, span, traces, until } from './rig.ts';

/** The records of the receiver, by event. */
async function toldOf({ runtime, dataDir }: Receiving): Promise<LogRecord[]> {
  await runtime.services.log.whenDurable(runtime.services.log.lastSeq());
  const reader = new SqliteReader(dataDir);
  try {
    const records: LogRecord[] = [];
    for await (const record of reader.read({ actor: 'otlp.intake/receiver' as never })) records.push(record);
    return records;
  } finally {
    reader.close();
  }
}

const spool = (dataDir: string) => readdirSync(join(dataDir, 'otlp-spool'));

test('[O1] while the database is away what is answered is on disk, and is inserted in order when it is back', async (t) => {
  const database = new FailingDatabase();
  database.fault = 'HF_COLUMNAR_UNREACHABLE';
  const receiving = await receive(t, database);
  for (const name of ['a', 'b', 'c'])
    t.is((await post(receiving, '/v1/traces', traces('s', span(name)))).status, 200);
  t.deepEqual(database.inserted, []);
  const [file = ''] = spool(receiving.dataDir);
  t.is(statSync(join(receiving.dataDir, 'otlp-spool', file)).mode & 0o777, 0o600);
  t.like(receiving.runtime.health().otlp, { ok: false, spool: { rows: 3 } });
  database.fault = undefined;
  await until(() => database.names.length === 3);
  t.deepEqual(database.names, ['a', 'b', 'c']);
  await until(async () => (await toldOf(receiving)).some(({ event }) => event.type === 'DATABASE_AVAILABLE'));
  const types = (await toldOf(receiving)).map(({ event }) => event.type);
  t.deepEqual(
    types.filter((type) => type.startsWith('DATABASE')),
    ['DATABASE_UNAVAILABLE', 'DATABASE_AVAILABLE'],
  );
  t.like(receiving.runtime.health().otlp, { ok: true });
});

test('[O1] a table that refuses its rows holds up no other', async (t) => {
  const database = new FailingDatabase();
  database.refusing.add('otel_logs');
  const receiving = await receive(t, database);
  const log = JSON.stringify({
    resourceLogs: [{ scopeLogs: [{ logRecords: [{ body: { stringValue: 'x' } }] }] }],
  });
  t.is((await post(receiving, '/v1/logs', log)).status, 200);
  t.is((await post(receiving, '/v1/traces', traces('s', span('through')))).status, 200);
  await until(() => database.names.includes('through'));
  database.refusing.clear();
  await until(() => database.inserted.some(({ table }) => table === 'otel_logs'));
  t.pass();
});

test('[O1] an instance that is stopped with rows on disk inserts them at its next start', async (t) => {
  const dataDir = tempDir(t);
  const away = new FailingDatabase();
  away.fault = 'HF_COLUMNAR_UNREACHABLE';
  const first = await receive(t, away, {}, dataDir);
  t.is((await post(first, '/v1/traces', traces('s', span('kept')))).status, 200);
  await first.stop();
  const there = new FailingDatabase();
  await receive(t, there, {}, dataDir);
  await until(() => there.names.includes('kept'));
  await until(() => spool(dataDir).length === 0 || there.inserted.length === 1);
  t.is(there.inserted.length, 1);
});

test('[O1] kill -9 between answer and insert loses nothing, and what was inserted before it is not inserted again', async (t) => {
  const dataDir = tempDir(t);
  const child = spawn(process.execPath, [new URL('killed-child.ts', import.meta.url).pathname, dataDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.on('data', (chunk) => {
    said += chunk;
  });
  await until(() => said.includes('answered'));
  child.kill('SIGKILL');
  await new Promise((resolve) => child.once('exit', resolve));
  const [, inserted = ''] = /inserted (\w+)/.exec(said) ?? [];
  const there = new FailingDatabase();
  await receive(t, there, {}, dataDir);
  await until(() => there.names.length === 20);
  t.deepEqual(new Set(there.names), new Set(Array.from({ length: 20 }, (_, at) => `span ${at}`)));
  t.regex(inserted, /^[0-9a-f]{24}$/);
  t.false(there.inserted.some(({ token }) => token === inserted));
});

test('[O1] an insert whose answer is lost is made again by the same name, so that the rows are there once', async (t) => {
  const database = new FailingDatabase();
  database.answersGetLost = true;
  const receiving = await receive(t, database);
  t.is((await post(receiving, '/v1/traces', traces('s', span('once')))).status, 200);
  database.answersGetLost = false;
  await until(() => database.tries > 1);
  t.is((await post(receiving, '/v1/traces', traces('s', span('next')))).status, 200);
  await until(() => database.names.includes('next'));
  t.deepEqual(database.names, ['once', 'next']);
});

test('[O4] of every signal, by HTTP and by gRPC, what is malformed is counted with its reason and the rest is taken', async (t) => {
  const receiving = await receive(t, new FailingDatabase());
  const scoped = (signal: string, scope: string, items: object) => ({
    [`resource${signal}`]: [{ [`scope${signal}`]: [{ [scope]: items }] }],
  });
  const bad = span('bad', { traceId: 'xyz' });
  const point = { asDouble: 1 };
  const bodies = {
    traces: [scoped('Spans', 'spans', [span('good'), bad]), 'rejectedSpans', /traceId is not 32 hex digits/],
    metrics: [
      scoped('Metrics', 'metrics', [
        { name: 'm', gauge: { dataPoints: [point, { ...point, timeUnixNano: nanos() }] } },
      ]),
      'rejectedDataPoints',
      /timeUnixNano is missing/,
    ],
    logs: [
      scoped('Logs', 'logRecords', [{ body: { stringValue: 'good' } }, { traceId: 'xyz' }]),
      'rejectedLogRecords',
      /traceId is not 32 hex digits/,
    ],
  } as const;
  for (const [signal, [body, count, reason]] of Object.entries(bodies)) {
    const answer = await post(receiving, `/v1/${signal}`, JSON.stringify(body));
    t.is(answer.status, 200);
    const { partialSuccess } = (await answer.json()) as { partialSuccess: Record<string, string> };
    t.is(partialSuccess[count], '1', signal);
    t.regex(partialSuccess.errorMessage ?? '', reason);
  }
  const field = (number: number, ...parts: Buffer[]) => {
    const content = Buffer.concat(parts);
    return Buffer.concat([Buffer.from([number * 8 + 2, content.length]), content]);
  };
  const three = Buffer.from('xyz');
  const start = Buffer.alloc(9, 7 * 8 + 1);
  start.writeBigUInt64LE(BigInt(nanos()), 1);
  const messages = {
    'trace.v1.TraceService': [field(1, field(2, field(2, field(1, three), start))), /traceId/],
    'metrics.v1.MetricsService': [
      field(1, field(2, field(2, field(1, three), field(5, field(1))))),
      /timeUnixNano is missing/,
    ],
    'logs.v1.LogsService': [field(1, field(2, field(2, field(9, three)))), /traceId/],
  } as const;
  for (const [service, [message, reason]] of Object.entries(messages)) {
    const { code, answer } = await callGrpc(receiving.grpc, receiving.key, undefined, message, service);
    t.is(code, status.OK);
    t.deepEqual([...(answer ?? Buffer.alloc(0)).subarray(2, 4)], [8, 1], `${service}: one was rejected`);
    t.regex(String(answer), reason);
  }
});

test('[O4] what is too large is refused: as it is, by its length, or inflated', async (t) => {
  const receiving = await receive(t, new FailingDatabase(), { bodyLimit: 4_096 });
  const large = traces('s', span('x'.repeat(5_000)));
  t.is((await post(receiving, '/v1/traces', large)).status, 413);
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
  t.true(bomb.length > 4_096);
  const small = await receive(t, new FailingDatabase(), { bodyLimit: 1024 * 1024 });
  const answer = await post(small, '/v1/traces', bomb, { 'content-encoding': 'gzip' });
  t.is(answer.status, 413);
  t.like(await answer.json(), { code: 8 });
  t.is((await chunked(receiving, large)).status, 413);
  const { code } = await callGrpc(receiving.grpc, receiving.key, undefined, Buffer.alloc(8_192));
  t.is(code, status.RESOURCE_EXHAUSTED);
  t.is((await post(receiving, '/v1/traces', traces('s', span('fits')))).status, 200);
});

test('[O4] broken bodies are 400 in the encoding of the request, other methods and types plain text', async (t) => {
  const receiving = await receive(t, new FailingDatabase());
  const broken = await post(receiving, '/v1/traces', '{"resourceSpans":[');
  t.is(broken.status, 400);
  t.like(await broken.json(), { code: 3 });
  const truncated = await post(receiving, '/v1/metrics', Buffer.from([0x0a, 0x7f, 0x01]), {
    'content-type': 'application/x-protobuf',
  });
  t.is(truncated.status, 400);
  t.is(truncated.headers.get('content-type'), 'application/x-protobuf');
  t.is(new Uint8Array(await truncated.arrayBuffer())[1], 3, 'google.rpc.Status with its code');
  t.is((await post(receiving, '/v1/logs', Buffer.from('no'), { 'content-encoding': 'gzip' })).status, 400);
  const get = await fetch(`${receiving.http}/v1/traces`, { headers: { authorization: receiving.key } });
  t.is(get.status, 405);
  t.regex(get.headers.get('content-type') ?? '', /^text\/plain/);
  const media = await post(receiving, '/v1/traces', 'x', { 'content-type': 'text/csv' });
  t.is(media.status, 415);
  t.regex(media.headers.get('content-type') ?? '', /^text\/plain/);
  t.is((await post(receiving, '/v1/traces', 'x', { 'content-encoding': 'br' })).status, 415);
  t.is(
    (await callGrpc(receiving.grpc, receiving.key, undefined, Buffer.from([0x0a, 0x7f]))).code,
    status.INVALID_ARGUMENT,
  );
});

/** The status that answers a request of which only the first byte of so many comes. */
function answerBeforeBody({ http }: Pick<Receiving, 'http'>, length: number, authorization?: string) {
  return new Promise<number | undefined>((resolve, reject) => {
    const sent = request(`${http}/v1/traces`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'content-length': String(length),
        ...(authorization !== undefined && { authorization }),
      },
    });
    sent.on('response', (response) => {
      resolve(response.statusCode);
      sent.destroy();
    });
    sent.on('error', reject);
    sent.write('{'); // and never the rest
  });
}

test('[O2] a stranger is answered before its body is read', async (t) => {
  const receiving = await receive(t, new FailingDatabase());
  t.is(await answerBeforeBody(receiving, 1_000_000), 401);
});

test('[O4] a body that is announced as too large is refused before it is read', async (t) => {
  const receiving = await receive(t, new FailingDatabase(), { bodyLimit: 1_024 });
  t.is(await answerBeforeBody(receiving, 1_025, receiving.key), 413);
});

test('[O2] where no plugin provides ingest keys, nobody is admitted', async (t) => {
  const { plugins } = resolveConfig(
    { plugins: [database(new FailingDatabase()), otlp({ port: 0, grpcPort: 0 })] },
    {},
  );
  const logger = createLogger({ level: 'silent' });
  const runtime = createRuntime({ plugins, dataDir: tempDir(t), logger });
  t.teardown(() => runtime.stop('test over'));
  await runtime.start();
  const http = runtime.surfaces.otlpHttp?.url ?? '';
  const answer = await post({ http, key: 'any' }, '/v1/traces', traces('s', span('x')));
  t.is(answer.status, 503);
  t.regex(await answer.text(), /No plugin provides the ingest keys/);
});

test('more than memory is set aside for is refused with the time to wait, and the log tells it once', async (t) => {
  const database = new FailingDatabase();
  const gate = Promise.withResolvers<void>();
  database.gate = gate.promise;
  const receiving = await receive(t, database, { memoryLimit: 1024 * 1024 });
  // Each holds its share until its rows are inserted: sixteen fill it.
  const held = Array.from({ length: 16 }, (_, at) =>
    post(receiving, '/v1/traces', traces('s', span(`held ${at}`))),
  );
  await until(() => database.tries > 0);
  let pressed: Response | undefined;
  await until(async () => {
    // Together more than fits at once: a slow machine may have answered the first sixteen by now.
    const more = Array.from({ length: 20 }, () => post(receiving, '/v1/traces', traces('s', span('more'))));
    pressed = (await Promise.all(more)).find(({ status: told }) => told === 429);
    return pressed;
  });
  t.is(pressed?.headers.get('retry-after'), '1');
  const call = await callGrpc(receiving.grpc, receiving.key, undefined, Buffer.alloc(0));
  if (call.code === status.UNAVAILABLE) {
    const details = call.metadata?.get('grpc-status-details-bin')[0];
    t.true(details?.toString().includes('google.rpc.RetryInfo'));
  }
  gate.resolve();
  for (const answer of await Promise.all(held)) t.is(answer.status, 200);
  const told = (await toldOf(receiving)).filter(({ event }) => event.type === 'OVERLOADED');
  t.is(told.length, 1);
});

test('a gRPC message that does not end takes no memory but what is set aside, and gives it back', async (t) => {
  const receiving = await receive(t, new FailingDatabase(), { memoryLimit: 1024 * 1024 });
  const begun = Buffer.alloc(400_000);
  begun.writeUInt32BE(500_000, 1);
  const sessions = [1, 2, 3, 4].map(() => connect(receiving.grpc).on('error', () => {}));
  t.teardown(() => sessions.forEach((session) => void session.destroy()));
  const statuses: unknown[] = [];
  for (const session of sessions) {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
      'content-type': 'application/grpc',
      authorization: receiving.key,
    });
    stream.on('error', () => {}).on('response', (headers) => statuses.push(Number(headers['grpc-status'])));
    stream.resume().write(begun);
  }
  await until(() => statuses.length === 2);
  t.deepEqual(statuses, [status.UNAVAILABLE, status.UNAVAILABLE]);
  for (const session of sessions) session.destroy();
  await until(
    async () =>
      (await callGrpc(receiving.grpc, receiving.key, undefined, Buffer.alloc(0))).code === status.OK,
  );
  t.pass();
});

test('a full spool refuses everything before it is read, and takes again when there is room', async (t) => {
  const database = new FailingDatabase();
  database.fault = 'HF_COLUMNAR_QUERY';
  const receiving = await receive(t, database, { spoolLimit: 1024 * 1024 });
  const noise = () => span('n', { attributes: [{ key: 'a', value: { stringValue: randomText(300_000) } }] });
  let answer: Response;
  let taken = 0;
  do {
    answer = await post(receiving, '/v1/traces', traces('s', noise()));
    if (answer.status === 200) taken += 1;
  } while (answer.status === 200 && taken < 50);
  t.is(answer.status, 503);
  t.is(answer.headers.get('retry-after'), '30');
  await until(
    () => receiving.runtime.health().otlp?.toString() !== '' && shutReason(receiving) !== undefined,
  );
  t.regex(shutReason(receiving) ?? '', /spool is full/);
  const call = await callGrpc(receiving.grpc, receiving.key);
  t.is(call.code, status.UNAVAILABLE);
  t.true(call.metadata?.get('grpc-status-details-bin')[0]?.toString().includes('google.rpc.RetryInfo'));
  database.fault = undefined;
  await until(() => shutReason(receiving) === undefined);
  await until(async () => (await post(receiving, '/v1/traces', traces('s', span('again')))).status === 200);
  t.is(database.names.filter((name) => name === 'n').length, taken);
});

function shutReason({ runtime }: Receiving): string | undefined {
  const report = runtime.health().otlp as { reason?: string } | undefined;
  return report?.reason?.startsWith('telemetry is refused') ? report.reason : undefined;
}

/** Text that does not compress. */
function randomText(length: number): string {
  let state = 42;
  let text = '';
  while (text.length < length) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += state.toString(36);
  }
  return text;
}

function chunked({ http, key }: Receiving, body: string): Promise<{ status: number | undefined }> {
  return new Promise((resolve, reject) => {
    const sent = request(`${http}/v1/traces`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: key, 'transfer-encoding': 'chunked' },
    });
    sent.on('response', (response) => resolve({ status: response.statusCode }));
    sent.on('error', reject);
    sent.end(body);
  });
}
