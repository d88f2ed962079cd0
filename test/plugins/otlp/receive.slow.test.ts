import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { credentials, status } from '@grpc/grpc-js';
import test from 'ava';
import fc from 'fast-check';
import {
  SIGNAL_COLUMNS,
  SIGNAL_TABLES,
  type SignalTable,
} from '../../../src/core/contracts/columnar-tables.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { Database } from '../../../src/plugins/columnar/database.ts';
import { decode, type Signal } from '../../../src/plugins/otlp/decode/decode.ts';
import { build } from '../../../src/plugins/otlp/decode/protobuf.ts';
import { readRows, writerOf } from '../../../src/plugins/otlp/decode/row-writer.ts';
import type { Row } from '../../../src/plugins/otlp/decode/rows.ts';
import { secretsFolder } from '../../../src/plugins/secrets/index.ts';
import { type ColumnarRig, openColumnar } from '../../support/columnar.ts';
import { runs } from '../../support/runs.ts';
import { tempDir } from '../../support/temp.ts';
import { bodies, inMetrics } from './arbitraries.ts';
import { exportersOf, grpcExporters, runProgram, TRANSPORTS } from './exporters.ts';
import { callGrpc } from './grpc-client.ts';
import { nanos, post, receive, span, traces, until } from './rig.ts';

let columnar: ColumnarRig;
test.before(async () => {
  columnar = await openColumnar();
});
test.after.always(() => columnar.close());

async function countOf(service: string, table: SignalTable = 'otel_traces'): Promise<number> {
  const sql = `SELECT count() AS n FROM telemetry.${table} WHERE ServiceName = {service:String}`;
  const [row] = await columnar.database.query<{ n: string }>(sql, { service });
  return Number(row?.n);
}

test.serial(
  '[O1] a span by curl is answered with an empty partialSuccess, and is in the table then',
  async (t) => {
    const receiving = await receive(t, columnar.database);
    const answer = await post(receiving, '/v1/traces', traces('probe', span('hello')));
    t.is(answer.status, 200);
    t.deepEqual(await answer.json(), { partialSuccess: {} });
    t.is(await countOf('probe'), 1);
  },
);

test.serial(
  '[O2] without the key, with a wrong one or behind a scheme: 401, nothing echoed, nothing kept',
  async (t) => {
    const receiving = await receive(t, columnar.database);
    const body = traces('stranger', span('hello'));
    const refused = async (authorization: string) => {
      const answer = await post(receiving, '/v1/traces', body, { authorization });
      t.is(answer.status, 401);
      const text = await answer.text();
      t.false(text.includes(receiving.key));
      return JSON.parse(text);
    };
    t.deepEqual(await refused(''), {
      code: 16,
      message: 'missing or empty authorization header: Authorization',
    });
    const wrong = await refused('11111111-2222-3333-4444-canarycanary');
    t.is(wrong.code, 16);
    t.false(wrong.message.includes('canary'));
    t.regex((await refused(`Bearer ${receiving.key}`)).message, /raw key/);
    t.is(await countOf('stranger'), 0);
  },
);

test.serial(
  '[O2,O25] the old token admits nobody, over HTTP or gRPC, and whoever sends it is told which key to use',
  async (t) => {
    const dataDir = tempDir(t);
    const folder = join(dataDir, 'secrets', 'store', 'observability');
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const old = 'the-old-token-canary';
    writeFileSync(join(folder, 'otel_ingest_token'), `${old}\n`, { mode: 0o600 });
    const receiving = await receive(t, columnar.database, {}, dataDir, [secretsFolder()]);
    for (const authorization of [old, `Bearer ${old}`]) {
      const answer = await post(receiving, '/v1/traces', traces('old-token', span('x')), { authorization });
      const { code, details } = await callGrpc(receiving.grpc, authorization);
      t.is(answer.status, 401, authorization);
      t.is(code, status.UNAUTHENTICATED, authorization);
      const told = [((await answer.json()) as { message: string }).message, details].join();
      t.false(told.includes(old));
      if (authorization === old) t.regex(told, /otel_ingest_token.*otel_ingest_api_key.*otel_ingest_token/s);
    }
    t.is((await callGrpc(receiving.grpc, receiving.key)).code, status.OK);
    t.is(await countOf('old-token'), 0);
  },
);

for (const transport of TRANSPORTS) {
  test.serial(
    `[O1,O3,O4,O6] a stock program that exports by ${transport} has its spans, metrics and logs kept`,
    async (t) => {
      const receiving = await receive(t, columnar.database);
      await runProgram(transport, exportersOf(transport, receiving));
      t.is(await countOf(transport), 2);
      t.is(await countOf(transport, 'otel_logs'), 1);
      t.is(await countOf(transport, 'otel_metrics_sum'), 1);
      t.is(await countOf(transport, 'otel_metrics_gauge'), 1);
      t.is(await countOf(transport, 'otel_metrics_histogram'), 1);
      const [row] = await columnar.database.query(
        `SELECT SpanAttributes['list'] AS list, Events.Name[1] AS event, Duration > 0 AS took
       FROM telemetry.otel_traces WHERE ServiceName = {service:String} AND SpanName = 'first'`,
        { service: transport },
      );
      t.like(row, { list: '["a","b"]', event: 'happened' });
      const [point] = await columnar.database.query<{ v: number }>(
        "SELECT Value AS v FROM telemetry.otel_metrics_sum WHERE ServiceName = {service:String} AND Attributes['route'] = 'a'",
        { service: transport },
      );
      t.is(Number(point?.v), 3);
    },
  );
}

test.serial('[O1,O4] what the HTTP exporter of Python sends is kept, gzipped or not', async (t) => {
  const receiving = await receive(t, columnar.database);
  const request = build().lookupType('TraceRequest');
  const ids = { traceId: 'W47/95gDgQPSabYzgT/GDA==', spanId: '7uGbfsPBsXQ=' }; // bytes are base64 here
  const bytes = Buffer.from(
    request.encode(request.fromObject(JSON.parse(traces('python', span('hello', ids))))).finish(),
  );
  const headers = {
    'user-agent': 'OTel-OTLP-Exporter-Python/1.38.0',
    'accept-encoding': 'gzip, deflate',
    accept: '*/*',
    'content-type': 'application/x-protobuf',
  };
  t.is((await post(receiving, '/v1/traces', bytes, headers)).status, 200);
  const zipped = { ...headers, 'content-encoding': 'gzip' };
  const answer = await post(receiving, '/v1/traces', gzipSync(bytes), zipped);
  t.is(answer.status, 200);
  t.is((await answer.arrayBuffer()).byteLength, 0, 'an empty ExportTraceServiceResponse');
  t.is(await countOf('python'), 2);
  const refused = await post({ ...receiving, key: `Bearer ${receiving.key}` }, '/v1/traces', bytes, headers);
  t.is(refused.headers.get('content-type'), 'application/x-protobuf');
  t.regex(await refused.text(), /without `Bearer`: OTEL_EXPORTER_OTLP_HEADERS="authorization=<key>"/);
});

test.serial('[O3] gRPC judges the metadata by the same rules and texts', async (t) => {
  const receiving = await receive(t, columnar.database);
  const call = (authorization?: string) => callGrpc(receiving.grpc, authorization);
  t.like(await call(), {
    code: status.UNAUTHENTICATED,
    details: 'missing or empty authorization header: Authorization',
  });
  const wrong = await call('canary-canary');
  t.is(wrong.code, status.UNAUTHENTICATED);
  t.false(wrong.details.includes('canary'));
  t.regex((await call(`Bearer ${receiving.key}`)).details, /raw key/);
  t.is((await call(receiving.key)).code, status.OK);
});

test.serial(
  '[O5] the outer listener demands a certificate and the key, and takes a renewed one up by itself',
  async (t) => {
    const dir = tempDir(t);
    const certificates = makeCertificates(dir);
    const receiving = await receive(t, columnar.database, {
      mtls: {
        port: 0,
        certFile: certificates.cert,
        keyFile: certificates.key,
        clientCaFile: certificates.ca,
        checkMs: 20,
      },
    });
    const url = receiving.runtime.surfaces.otlpMtls?.url ?? '';
    t.regex(url, /^https:/);
    const ca = readFileSync(certificates.ca);
    const client = credentials.createSsl(
      ca,
      readFileSync(certificates.clientKey),
      readFileSync(certificates.clientCert),
    );
    await runProgram('outside', grpcExporters(url, receiving.key, client));
    t.is(await countOf('outside'), 2);

    t.is(
      (await callGrpc(url, receiving.key, credentials.createSsl(ca))).code,
      status.UNAVAILABLE,
      'no certificate',
    );
    t.is((await callGrpc(url, undefined, client)).code, status.UNAUTHENTICATED, 'no key');
    t.is((await callGrpc(url, receiving.key, client)).code, status.OK);

    // The new certificate is of an authority that only the second client trusts.
    const renewed = makeCertificates(tempDir(t), certificates);
    renameSync(renewed.key, certificates.key); // half a renewal: the old one goes on
    t.is((await callGrpc(url, receiving.key, client)).code, status.OK);
    copyFileSync(renewed.cert, certificates.cert);
    const second = credentials.createSsl(
      readFileSync(renewed.ca),
      readFileSync(certificates.clientKey),
      readFileSync(certificates.clientCert),
    );
    await until(async () => (await callGrpc(url, receiving.key, second)).code === status.OK);
  },
);

/** An authority, a server's certificate and a client's. @param clients whose authority signs the client's instead */
function makeCertificates(dir: string, clients?: { readonly ca: string }) {
  const file = (name: string) => join(dir, name);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' });
  const key = (name: string) => [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    file(name),
  ];
  openssl(
    'req',
    '-x509',
    ...key('ca.key'),
    '-out',
    file('ca.crt'),
    '-days',
    '1',
    '-subj',
    '/CN=test authority',
  );
  const signed = (name: string) => {
    openssl(
      'req',
      ...key(`${name}.key`),
      '-out',
      file(`${name}.csr`),
      '-subj',
      `/CN=${name}`,
      '-addext',
      'subjectAltName=IP:127.0.0.1',
    );
    openssl(
      'x509',
      '-req',
      '-in',
      file(`${name}.csr`),
      '-CA',
      file('ca.crt'),
      '-CAkey',
      file('ca.key'),
      '-out',
      file(`${name}.crt`),
      '-days',
      '1',
      '-copy_extensions',
      'copy',
    );
  };
  signed('server');
  if (!clients) signed('client');
  return {
    ca: file('ca.crt'),
    cert: file('server.crt'),
    key: file('server.key'),
    clientCert: file('client.crt'),
    clientKey: file('client.key'),
  };
}

test.serial('[O4] 10,000 spans in one gzipped body are all kept, and hold nothing else up', async (t) => {
  const receiving = await receive(t, columnar.database);
  const many = Array.from({ length: 10_000 }, (_, at) =>
    span(`op ${at % 50}`, { attributes: [{ key: 'n', value: { intValue: at } }] }),
  );
  const body = gzipSync(traces('bulk', ...many));
  const answer = await post(receiving, '/v1/traces', body, { 'content-encoding': 'gzip' });
  t.deepEqual(await answer.json(), { partialSuccess: {} });
  await until(async () => (await countOf('bulk')) === 10_000);
});

test.serial(
  '[O4] times of any year are inserted, however many days they are of; of the future none',
  async (t) => {
    const receiving = await receive(t, columnar.database);
    const day = 86_400_000_000_000n;
    const ancient = Array.from({ length: 150 }, (_, at) =>
      span('old', { startTimeUnixNano: String(BigInt(at + 1) * day) }),
    );
    const far = span('far', { startTimeUnixNano: '9223372036854775807' });
    const answer = await post(receiving, '/v1/traces', traces('skewed', ...ancient, far));
    t.deepEqual(await answer.json(), {
      partialSuccess: {
        rejectedSpans: '1',
        errorMessage: "1 refused. 1: startTimeUnixNano is more than a day ahead of the receiver's clock.",
      },
    });
    // What is older than the retention the database drops by itself, some time after.
    const inserted = 'holdfast_otlp_rows_total{table="otel_traces",result="inserted"} 150';
    await until(async () => (await receiving.runtime.services.metrics.text()).includes(inserted));
  },
);

/** Times as digits, other columns as they are. */
function selected(column: string, type: string): string {
  const digits = (time: string) => `toString(toUnixTimestamp64Nano(${time}))`;
  if (type === 'DateTime64(9)') return digits(`\`${column}\``);
  return type === 'Array(DateTime64(9))' ? `arrayMap(at -> ${digits('at')}, \`${column}\`)` : `\`${column}\``;
}

test.serial(
  '[O4,O6] what the thread writes of any signal is what the table has then: any text, 64-bit numbers, NaN, nested maps',
  async (t) => {
    const at = nanos();
    const origin = {
      resource: {
        attributes: [{ key: 'service.name', value: { stringValue: 'round "trip" \u0000 ünï 🜚' } }],
      },
    };
    const numbers = ['NaN', 'Infinity', '-Infinity', 5e-324, 1.7976931348623157e308, 0.1].map((asDouble) => ({
      timeUnixNano: at,
      asDouble,
    }));
    const inputs: [Signal, object][] = [
      ['metrics', inMetrics({ name: 'numbers', gauge: { dataPoints: numbers } })],
      ...bodies(fc.constant(at), fc.constant(at)).flatMap(([signal, arbitrary]) =>
        // The same ones each time: among other forty there may be none of a kind that is rare.
        fc.sample(arbitrary, { numRuns: runs(40), seed: 7 }).map((body): [Signal, object] => [signal, body]),
      ),
    ];
    const written = new Map<SignalTable, Row[]>();
    for (const [signal, body] of inputs) {
      for (const groups of Object.values(body)) Object.assign(groups[0], origin);
      for (const row of (await decode(signal, 'json', Buffer.from(JSON.stringify(body)), Date.now())).rows)
        written.set(row.table, [...(written.get(row.table) ?? []), row]);
    }
    t.deepEqual([...written.keys()].sort(), [...SIGNAL_TABLES].sort());
    for (const [table, rows] of written) {
      await columnar.empty(table);
      const schema = await columnar.database.schema(table);
      const { layout, columns: names } = writerOf(schema);
      const bytes = Buffer.from(rows.map(({ text }) => text).join('\n'));
      await columnar.database.insert(table, { rows: rows.length, schema, columns: names, bytes });
      const columns = SIGNAL_COLUMNS[table];
      const select = columns.map(([name, type]) => `${selected(name, type)} AS \`${name}\``);
      const found = await columnar.database.query(`SELECT ${select.join(', ')} FROM ${table}`);
      const expected = readRows(layout, bytes).map((row) =>
        // Min and Max that were not given are the column's default.
        Object.fromEntries(columns.map(([name]) => [name, row[name] ?? 0])),
      );
      const sorted = (all: readonly object[]) => all.map((row) => JSON.stringify(row, plain)).sort();
      t.deepEqual(sorted(found), sorted(expected), table);
    }
  },
);

/** Instants and integers in one way of writing. */
function plain(_name: string, value: unknown): unknown {
  if (typeof value === 'string' && /^0\d+$/.test(value)) return value.replace(/^0+(?=\d)/, '');
  return value;
}

test.serial(
  '[O6] tables of others take what is received: fewer columns, whole seconds, attributes of the type JSON, older names',
  async (t) => {
    const run = (sql: string) =>
      columnar.engine.command(sql, { seconds: 10, signal: new AbortController().signal });
    await run('DROP TABLE telemetry.otel_traces SYNC');
    await run(
      'CREATE TABLE telemetry.otel_traces (Timestamp DateTime, ServiceName LowCardinality(String), SpanName String, SpanKind String, SpanAttributes JSON, Note String) ENGINE = MergeTree ORDER BY Timestamp',
    );
    await run("INSERT INTO telemetry.otel_traces (Timestamp, SpanKind) VALUES (now(), 'SPAN_KIND_CLIENT')");
    const schema = { database: 'telemetry', retentionDays: 30, replicas: 1 };
    const database = new Database({ engine: columnar.engine, clock: systemClock, schema });
    const receiving = await receive(t, database);
    const attributes = [{ key: 'a.b', value: { stringValue: 'c' } }];
    // The first is written before the thread knows what the table is like.
    for (const name of ['first', 'second'])
      t.is((await post(receiving, '/v1/traces', traces('others', span(name, { attributes })))).status, 200);
    t.deepEqual(
      await database.query(
        "SELECT SpanName, SpanKind, toString(SpanAttributes.a.b) AS ab, Timestamp > now() - 600 AS new FROM telemetry.otel_traces WHERE ServiceName = 'others' ORDER BY SpanName",
      ),
      ['first', 'second'].map((SpanName) => ({ SpanName, SpanKind: 'SPAN_KIND_SERVER', ab: 'c', new: 1 })),
    );
    await run('ALTER TABLE telemetry.otel_traces DROP COLUMN SpanAttributes');
    t.is((await post(receiving, '/v1/traces', traces('others', span('third')))).status, 200);
    await until(async () => {
      const [row] = await database.query<{ n: string }>('SELECT count() AS n FROM telemetry.otel_traces');
      return row?.n === '4';
    });
  },
);
