import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { status } from '@grpc/grpc-js';
import test from 'ava';
import { SqliteReader } from '../../../src/core/kernel/log/sqlite-reader.ts';
import { verifyLog } from '../../../src/core/kernel/replay/verify-log.ts';
import { Segments } from '../../../src/plugins/otlp/spool/segments.ts';
import { tempDir } from '../../support/temp.ts';
import { FailingDatabase } from './database.ts';
import { callGrpc } from './grpc-client.ts';
import { post, receive, span, traces, until } from './rig.ts';

test.serial(
  'a stranger who sends on after the answer is read as far as the largest body, and then cut off',
  async (t) => {
    const receiving = await receive(t, new FailingDatabase(), { bodyLimit: 1024 * 1024 });
    const { hostname, port } = new URL(receiving.http);
    const socket = connect(Number(port), hostname).on('error', () => {});
    t.teardown(() => void socket.destroy());
    socket.write(
      `POST /v1/traces HTTP/1.1\r\nhost: ${hostname}:${port}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
    );
    let answer = '';
    socket.on('data', (data) => {
      answer += data;
    });
    let closed = false;
    socket.on('close', () => {
      closed = true;
    });
    const part = Buffer.from(`10000\r\n${' '.repeat(0x10000)}\r\n`);
    let sent = 0;
    await until(async () => {
      if (!closed && !socket.write(part)) {
        await new Promise((resolve) => socket.once('drain', resolve).once('close', resolve)); // also after an error
      }
      sent += part.length;
      return closed;
    });
    t.regex(answer, /^HTTP\/1\.1 401 /);
    t.true(sent > 1024 * 1024);
  },
);

test.serial('a body of more items, or more messages, than any producer sends is refused whole', async (t) => {
  const database = new FailingDatabase();
  const receiving = await receive(t, database);
  const nothing = (count: number) =>
    `{"resourceSpans":[{"scopeSpans":[{"spans":[${new Array(count).fill('{}')}]}]}]}`;
  const items = await post(receiving, '/v1/traces', nothing(100_001));
  t.is(items.status, 400);
  t.regex(await items.text(), /more than 100000 spans/);
  t.is((await post(receiving, '/v1/traces', nothing(1_000_001))).status, 400);
  t.is((await post(receiving, '/v1/traces', traces('s', span('next')))).status, 200);
  t.deepEqual(database.names, ['next']);
});

test.serial(
  '[O1] a batch that is damaged on disk is told by the health page, and the others are inserted',
  async (t) => {
    const dataDir = tempDir(t);
    const away = new FailingDatabase();
    away.fault = 'HF_COLUMNAR_UNREACHABLE';
    const first = await receive(t, away, {}, dataDir);
    for (const name of ['damaged', 'whole']) await post(first, '/v1/traces', traces('s', span(name)));
    await first.stop();
    const folder = join(dataDir, 'otlp-spool');
    const file = join(folder, readdirSync(folder).find((name) => name.endsWith('.rows')) ?? '');
    const content = readFileSync(file);
    const at = content.indexOf(10) + 5;
    content[at] = (content[at] ?? 0) ^ 1;
    writeFileSync(file, content);
    const there = new FailingDatabase();
    const { runtime } = await receive(t, there, {}, dataDir);
    await until(() => there.names.length > 0);
    t.deepEqual(there.names, ['whole']);
    t.like(runtime.health().otlp, { damagedFrames: 1 });
  },
);

test.serial(
  '[O1] rows on disk that were written for other columns are written again for the table as it is',
  async (t) => {
    const dataDir = tempDir(t);
    const frame = {
      id: 'old',
      table: 'otel_traces',
      rows: 1,
      at: 0,
      layout: 'Timestamp:0,SpanName,Gone',
    } as const;
    const row = ['1763700000', 'old', 1];
    new Segments(join(dataDir, 'otlp-spool'), 1024 * 1024).append([
      { frame, text: Buffer.from(JSON.stringify(row)) },
    ]);
    const database = new FailingDatabase();
    await receive(t, database, {}, dataDir);
    await until(() => database.inserted.length > 0);
    t.like(database.inserted[0]?.rows[0], { Timestamp: '1763700000000000000', SpanName: 'old' });
  },
);

test.serial(
  '[O1,C4] when the thread that decodes dies nothing that was answered is lost, it starts anew, and the log replays',
  async (t) => {
    const threads: Worker[] = [];
    const note = (thread: Worker) => void threads.push(thread);
    process.on('worker', note);
    t.teardown(() => process.off('worker', note));
    const database = new FailingDatabase();
    database.fault = 'HF_COLUMNAR_UNREACHABLE';
    const receiving = await receive(t, database);
    const before = threads.length;
    t.is((await post(receiving, '/v1/traces', traces('s', span('before')))).status, 200);
    t.is(threads.length, before + 1, 'the thread starts with the first body');
    await threads.at(-1)?.terminate();
    const statuses = new Set<number>();
    await until(async () => {
      const { status } = await post(receiving, '/v1/traces', traces('s', span('after')));
      statuses.add(status);
      return status === 200;
    });
    t.deepEqual([...statuses], [503, 200]);
    database.fault = undefined;
    await until(() => database.names.includes('before') && database.names.includes('after'));
    const { runtime, dataDir } = receiving;
    await receiving.stop();
    const reader = new SqliteReader(dataDir);
    t.teardown(() => reader.close());
    const actors = new Map(runtime.registrations.actors.map((actor) => [actor.type, actor]));
    t.is(verifyLog(reader, actors).divergence, undefined);
  },
);

test.serial('[O1] where the spool cannot be written nothing is answered with 200', async (t) => {
  const receiving = await receive(t, new FailingDatabase());
  writeFileSync(join(receiving.dataDir, 'otlp-spool'), 'in the way');
  t.is((await post(receiving, '/v1/traces', traces('s', span('lost')))).status, 503);
  await until(() => JSON.stringify(receiving.runtime.health().otlp).includes('the spool cannot be opened'));
  t.is((await post(receiving, '/v1/traces', traces('s', span('lost')))).status, 503);
});

test.serial('a file in the place of the spool costs the receiver alone, and says what to do', async (t) => {
  const dataDir = tempDir(t);
  writeFileSync(join(dataDir, 'otlp-spool'), 'in the way');
  const { runtime } = await receive(t, new FailingDatabase(), {}, dataDir);
  t.deepEqual(Object.keys(runtime.surfaces), []);
  const report = runtime.bootReport().join('\n');
  t.regex(
    report,
    /otlp failed.*HF_OTLP_SPOOL.*otlp-spool.*it is a file\. If it is not a folder, move it away/,
  );
  t.regex(report, /collector \d+ ms/);
});

test.serial('[O3] a gRPC stream that its client never ends is ended, whatever it began as', async (t) => {
  const receiving = await receive(t, new FailingDatabase(), { requestTimeoutMs: 200 });
  const session = connectHttp2(receiving.grpc).on('error', () => {});
  t.teardown(() => void session.destroy());
  const open = (headers: OutgoingHttpHeaders, sent?: Buffer) =>
    new Promise<number>((resolve) => {
      let answer = -1;
      const stream = session.request({
        ':method': 'POST',
        ':path': '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
        'content-type': 'application/grpc',
        ...headers,
      });
      stream
        .on('error', () => {})
        .on('response', (told) => {
          answer = Number(told['grpc-status'] ?? told[':status']);
        });
      stream.on('close', () => resolve(answer)).resume();
      if (sent) stream.write(sent);
    });
  const { key: authorization } = receiving;
  const half = Buffer.alloc(100);
  half.writeUInt32BE(5_000, 1);
  // More in all than a connection may have open at once: none of them stays.
  for (let round = 0; round < 3; round += 1) {
    const strangers = await Promise.all(Array.from({ length: 40 }, () => open({}, half)));
    t.deepEqual([...new Set(strangers)], [status.UNAUTHENTICATED]);
  }
  t.is(await open({ authorization }), status.DEADLINE_EXCEEDED, 'no message');
  t.is(await open({ authorization }, half), status.DEADLINE_EXCEEDED, 'half a message');
  const counted = 'otlp_turned_away_total{reason="request_slow"} 2';
  t.true((await receiving.runtime.services.metrics.text()).includes(counted));
  const said: unknown[] = [];
  const { error } = console;
  console.error = (...words) => void said.push(...words);
  t.teardown(() => {
    console.error = error;
  });
  t.is(await open({ authorization: `${authorization}\u009b` }), status.UNAUTHENTICATED);
  console.error = error;
  t.deepEqual(said, [], 'the library repeats no key that it cannot read');
  t.is(await open({ authorization, ':path': '/no.such/Method' }), status.UNIMPLEMENTED);
  t.is(await open({ authorization, 'content-type': 'text/plain' }), 415);
  t.true((await open({ authorization, 'x-large': 'x'.repeat(100_000) })) <= 0 || session.closed);
  t.is((await callGrpc(receiving.grpc, authorization)).code, status.OK);
});

test.serial('a body that dawdles has its time, with the key and without', async (t) => {
  const receiving = await receive(t, new FailingDatabase(), {
    requestTimeoutMs: 200,
    memoryLimit: 1024 * 1024,
  });
  const { hostname, port } = new URL(receiving.http);
  const dawdle = (headers: string) =>
    new Promise<string>((resolve) => {
      const socket = connect(Number(port), hostname).on('error', () => {});
      t.teardown(() => void socket.destroy());
      let answer = '';
      socket.on('data', (data) => {
        answer += data;
      });
      socket.on('close', () => resolve(answer.split('\r\n')[0] ?? ''));
      socket.write(`POST /v1/traces HTTP/1.1\r\nhost: ${hostname}:${port}\r\n${headers}`);
    });
  const type = 'content-type: application/json\r\n';
  const length = 'content-length: 200000\r\n\r\n{';
  t.regex(await dawdle(type), /408/, 'headers that do not end');
  t.regex(await dawdle(`${type}${length}`), /401/, 'a stranger');
  const own = `${type}authorization: ${receiving.key}\r\n${length}`;
  // Six of them would be more than there is memory for, if they kept theirs.
  for (let round = 0; round < 2; round += 1) {
    const answers = await Promise.all([own, own, own, own].map(dawdle));
    t.deepEqual([...new Set(answers)], ['HTTP/1.1 408 Request Timeout']);
  }
  t.is((await post(receiving, '/v1/traces', traces('s', span('next')))).status, 200);
});
