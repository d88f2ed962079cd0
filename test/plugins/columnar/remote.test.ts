import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../../src/core/kernel/clock.ts';
import { HoldfastError } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { Database } from '../../../src/plugins/columnar/database.ts';
import { RemoteEngine } from '../../../src/plugins/columnar/engine/remote.ts';
import { type ColumnarServer, startColumnarServer } from '../../support/columnar-server.ts';
import { tempDir } from '../../support/temp.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

let server: ColumnarServer;
test.before(async () => {
  server = await startColumnarServer();
});
test.after.always(() => server.close());
test.beforeEach(() => {
  server.fault = 'none';
  server.password = '';
});

interface Given {
  readonly url?: string;
  readonly database?: string;
  readonly password?: () => string;
  readonly ca?: () => Buffer;
  readonly replicas?: number;
  readonly clock?: Clock;
}

function open(t: ExecutionContext, given: Given = {}): { database: Database; engine: RemoteEngine } {
  const { database = 'default', password = () => '', ca = () => undefined, replicas = 1 } = given;
  const engine = new RemoteEngine({
    url: given.url ?? server.url,
    user: 'default',
    database,
    password: async () => password(),
    ca,
  });
  t.teardown(() => engine.close());
  const schema = { database, retentionDays: 30, replicas };
  return { engine, database: new Database({ engine, clock: given.clock ?? systemClock, schema }) };
}

const now = () => new Date().toISOString();

test.serial(
  '[O7] a server takes the same rows and gives the same answers as the embedded engine',
  async (t) => {
    const { database } = open(t);
    await database.insert('otel_logs', [
      {
        Timestamp: now(),
        Body: "it's \\ \n ü",
        ServiceName: 's',
        ResourceAttributes: { 'host.name': 'nas-1' },
      },
    ]);
    const rows = await database.query(
      "SELECT Body, ResourceAttributes['host.name'] AS host, toUInt64(18446744073709551615) AS big FROM otel_logs WHERE Body = {body:String} AND ServiceName IN {names:Array(String)}",
      { body: "it's \\ \n ü", names: ['s', "o'ther"] },
    );
    t.deepEqual(rows, [{ Body: "it's \\ \n ü", host: 'nas-1', big: '18446744073709551615' }]);
    t.deepEqual(await database.drift(), []);
    const unbounded = server.seen.settings.filter(
      ({ max_execution_time }) => max_execution_time === undefined,
    );
    t.deepEqual(unbounded, [], 'each has an end in the server too');
  },
);

test.serial('what a person types runs with the settings that let it only read', async (t) => {
  const { database } = open(t);
  const { rows, columns, truncated } = await database.ask('SELECT number FROM numbers(5) -- all', 3);
  t.deepEqual(rows, [['0'], ['1'], ['2']]);
  t.deepEqual(columns, [{ name: 'number', type: 'UInt64' }]);
  t.true(truncated);
  const { readonly, max_execution_time, max_memory_usage } = server.seen.settings.at(-1) ?? {};
  t.deepEqual({ readonly, max_execution_time }, { readonly: '1', max_execution_time: '10' });
  t.truthy(max_memory_usage);
  for (const sql of [
    "SELECT * FROM file('/etc/passwd')",
    'SELECT * FROM system.users',
    'SELECT ofTheServer(1)',
  ])
    await t.throwsAsync(database.ask(sql, 3), { code: 'HF_COLUMNAR_REFUSED' }, sql);
  await server.run("CREATE TABLE elsewhere (a String) ENGINE = URL('http://127.0.0.1:9', CSV)");
  await t.throwsAsync(database.ask('SELECT * FROM elsewhere', 3), {
    message: /it reads elsewhere, a table of the engine URL/,
  });
  await t.throwsAsync(database.ask('SELECT 1 IN elsewhere', 3), {
    message: /it reads elsewhere, a table of the engine URL/,
  });
  await server.run('DROP TABLE elsewhere');
  server.fault = 'reader';
  t.deepEqual(
    (await database.ask('SELECT 1', 3)).rows,
    [[1]],
    'of a user who may only read the limits are set',
  );
  t.like(server.seen.settings.at(-1), { max_execution_time: '10', max_memory_usage: '1000000000' });
  server.fault = 'none';
  // Within the days for which rows are kept; a whole second, as now() of the engine is.
  const until = Math.floor(Date.now() / 1_000) * 1_000 - 60_000;
  const at = (ms: number) => new Date(until + ms).toISOString();
  const line = { Body: 'of a moment' };
  await database.insert('otel_logs', [
    { ...line, Timestamp: at(-1) },
    { ...line, Timestamp: at(1) },
  ]);
  const then = "SELECT now(), max(Timestamp) FROM otel_logs WHERE Body = 'of a moment'";
  const { text } = await database.askText(then, 3, { until, isoTimes: true });
  t.deepEqual(
    text
      .trim()
      .split('\n')
      .slice(2)
      .map((row) => JSON.parse(row)),
    [[at(0).replace('.000', ''), at(-1).replace('999Z', '999000000Z')]],
    'at a moment of the past later rows are left out',
  );
  // Past the check of the statement the engine refuses by itself.
  const bounds = { seconds: 5, signal: new AbortController().signal };
  await t.throwsAsync(open(t).engine.ask('DROP TABLE otel_logs', { rows: 1 }, bounds), {
    message: /readonly/i,
  });
});

test.serial(
  '[O7] by TLS with an authority of one’s own; without it the certificate is refused',
  async (t) => {
    const dir = tempDir(t);
    const file = (name: string) => join(dir, name);
    const subject = [
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      '2',
    ];
    const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
    execFileSync(
      'openssl',
      ['req', ...subject, ...names, '-keyout', file('key.pem'), '-out', file('cert.pem')],
      {
        stdio: 'ignore',
      },
    );
    const cert = readFileSync(file('cert.pem'));
    // One folder a process: the listener by TLS stands before the same bridge.
    const { createServer } = await import('node:https');
    const { request } = await import('node:http');
    const proxy = createServer({ key: readFileSync(file('key.pem')), cert }, (incoming, outgoing) => {
      const { hostname, port } = new URL(server.url);
      const { method, url, headers } = incoming;
      incoming.pipe(
        request({ hostname, port, method, path: url, headers }, (answer) => {
          outgoing.writeHead(answer.statusCode ?? 500, answer.headers);
          answer.pipe(outgoing);
        }),
      );
    });
    await new Promise<void>((resolve) => proxy.listen(0, 'localhost', resolve));
    t.teardown(() => void proxy.closeAllConnections());
    t.teardown(() => void proxy.close());
    const url = `https://localhost:${(proxy.address() as { port: number }).port}`;
    t.deepEqual(await open(t, { url, ca: () => cert }).database.query('SELECT 1 AS one'), [{ one: 1 }]);
    const error = await t.throwsAsync(open(t, { url }).database.query('SELECT 1'), {
      code: 'HF_COLUMNAR_UNREACHABLE',
    });
    t.regex(String(error?.message), /certificate is not accepted/);
  },
);

test.serial('[O7] a wrong password is told as such, and a renewed one is taken up', async (t) => {
  server.password = 'new-canary-password';
  let password = 'old-canary-password';
  const { database, engine } = open(t, { password: () => password });
  const error = await t.throwsAsync(database.query('SELECT 1'), { code: 'HF_COLUMNAR_CREDENTIALS' });
  t.notRegex(JSON.stringify(error) + String(error?.stack), /canary/);
  password = 'new-canary-password';
  engine.reconnect();
  t.deepEqual(await database.query('SELECT 1 AS one'), [{ one: 1 }]);
});

for (const [fault, code] of [
  ['half', 'HF_COLUMNAR_ANSWER'],
  ['reset', 'HF_COLUMNAR_UNREACHABLE'],
  ['proxy', 'HF_COLUMNAR_ANSWER'],
  ['full', 'HF_COLUMNAR_FULL'],
  ['busy', 'HF_COLUMNAR_BUSY'],
] as const) {
  test.serial(
    `[O7] a server that answers as in “${fault}” ends as ${code}, and the next call works`,
    async (t) => {
      const { database } = open(t);
      await database.schema('otel_logs');
      server.fault = fault;
      const options = { maxSeconds: 1 };
      await t.throwsAsync(database.query('SELECT number FROM numbers(100)', {}, options), { code });
      if (fault !== 'half')
        await t.throwsAsync(database.insert('otel_logs', [{ Timestamp: now(), Body: 'lost' }], options), {
          code,
        });
      server.fault = 'none';
      t.deepEqual(await database.query('SELECT 1 AS one'), [{ one: 1 }]);
    },
  );
}

test.serial(
  '[O7] a server that never answers has given no answer within the time, and leaves no timer behind',
  async (t) => {
    const clock = new VirtualClock();
    const { database } = open(t, { clock });
    await database.query('SELECT 1');
    server.fault = 'hang';
    const before = server.seen.count;
    const hung = t.throwsAsync(database.query('SELECT 1', {}, { maxSeconds: 5 }), {
      code: 'HF_COLUMNAR_UNREACHABLE',
      message: /cannot be reached: no answer within 5 s/,
    });
    while (server.seen.count === before) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(60_000);
    await hung;
    t.is(clock.armed, 0);
    server.fault = 'none';
    t.deepEqual(await database.query('SELECT 1 AS one'), [{ one: 1 }]);
  },
);

test.serial('[O7] a new connection does not cut off what runs on the old one', async (t) => {
  const { database, engine } = open(t);
  await database.query('SELECT 1');
  const before = server.seen.count;
  const slow = database.query('SELECT sleep(0.5) AS slept');
  while (server.seen.count === before) await new Promise((resolve) => setImmediate(resolve));
  engine.reconnect();
  t.deepEqual(await database.query('SELECT 1 AS one'), [{ one: 1 }]);
  t.deepEqual(await slow, [{ slept: 0 }]);
});

test.serial('[O7] a server of an old version is named as too old, whatever is asked of it', async (t) => {
  server.fault = 'old';
  const { database, engine } = open(t);
  const code = 'HF_COLUMNAR_OLD';
  const error = await t.throwsAsync(database.query('SELECT 1'), { code });
  t.regex(String(error?.message), /too old: it is ClickHouse 18\.16\.1, and Holdfast needs 24\.8 or newer/);
  await t.throwsAsync(database.ask('SELECT 1', 1), { code });
  await t.throwsAsync(database.insert('otel_logs', [{ Timestamp: now() }]), { code });
  await t.throwsAsync(database.drift(), { code });
  server.fault = 'none';
  engine.reconnect();
  t.deepEqual(await database.query('SELECT 1 AS one'), [{ one: 1 }], 'after its upgrade it serves');
});

test.serial('[O7] a server that is stopped is unreachable, and reached again when it is back', async (t) => {
  const { database } = open(t);
  await database.query('SELECT 1');
  await server.stop();
  const error = await t.throwsAsync(database.query('SELECT 1'), { instanceOf: HoldfastError });
  t.is((error as HoldfastError).code, 'HF_COLUMNAR_UNREACHABLE');
  await server.restart();
  t.deepEqual(await database.query('SELECT 1 AS one'), [{ one: 1 }]);
});

test.serial(
  '[O6] the tables of ClickStack and of the collector’s exporter are used as they are',
  async (t) => {
    await server.run('CREATE DATABASE foreign');
    // Of ClickStack: whole seconds, fewer columns. Of the exporter: a second time column, prefixed names of kinds.
    await server.run(
      'CREATE TABLE foreign.otel_metrics_sum (ServiceName LowCardinality(String), MetricName String, Attributes Map(LowCardinality(String), String), TimeUnix DateTime, Value Float64) ENGINE = MergeTree ORDER BY (ServiceName, MetricName, TimeUnix)',
    );
    await server.run(
      'CREATE TABLE foreign.otel_logs (Timestamp DateTime64(9), TimestampTime DateTime DEFAULT toDateTime(Timestamp), ServiceName LowCardinality(String), Body String, Upper String MATERIALIZED upper(Body), EventName String ALIAS ServiceName) ENGINE = MergeTree ORDER BY Timestamp',
    );
    await server.run(
      'CREATE TABLE foreign.otel_traces (Timestamp DateTime64(9), ServiceName String, SpanName String, SpanKind String, StatusCode String, Duration Int64, Events Nested (Timestamp DateTime64(9), Name LowCardinality(String))) ENGINE = Log',
    );
    await server.run(
      "INSERT INTO foreign.otel_traces (Timestamp, ServiceName, SpanKind, StatusCode) VALUES (now64(9), 'before', 'SPAN_KIND_CLIENT', 'STATUS_CODE_UNSET')",
    );
    const { database } = open(t, { database: 'foreign' });
    const at = '2026-09-21T14:13:20.123456789Z';
    await database.insert('otel_metrics_sum', [
      { MetricName: 'file.mtime', TimeUnix: at, Value: 1, Flags: 7, IsMonotonic: false },
    ]);
    await database.insert('otel_logs', [
      { Timestamp: at, Body: 'body', TraceId: 'gone', EventName: 'of theirs' },
    ]);
    await database.insert('otel_traces', [
      {
        Timestamp: at,
        ServiceName: 'after',
        SpanKind: 'SPAN_KIND_SERVER',
        StatusCode: 'STATUS_CODE_OK',
        Duration: '5',
        'Events.Timestamp': [at],
        'Events.Name': ['e'],
      },
    ]);
    t.deepEqual(await database.query('SELECT toUnixTimestamp(TimeUnix) AS at FROM otel_metrics_sum'), [
      { at: 1_790_000_000 },
    ]);
    t.deepEqual(await database.query('SELECT toUnixTimestamp(TimestampTime) AS at, Upper FROM otel_logs'), [
      { at: 1_790_000_000, Upper: 'BODY' },
    ]);
    t.deepEqual(
      await database.query(
        "SELECT SpanKind, StatusCode, Events.Name AS events, toUnixTimestamp64Nano(Timestamp) AS at FROM otel_traces WHERE ServiceName = 'after'",
      ),
      [
        {
          SpanKind: 'SPAN_KIND_SERVER',
          StatusCode: 'STATUS_CODE_OK',
          events: ['e'],
          at: '1790000000123456789',
        },
      ],
    );
    t.false((await database.schema('otel_logs')).isOurs);
    t.true((await database.schema('otel_metrics_gauge')).isOurs, 'what was missing is made');
    t.deepEqual(await database.drift(), [{ table: 'otel_traces', engine: 'Log', expected: 'MergeTree' }]);
    const replicated = open(t, { database: 'foreign', replicas: 2 }).database;
    t.is((await replicated.drift()).length, 7, 'none of them is replicated');
  },
);

test.serial(
  '[O6] migrations may run again, take up a new retention, and never make replicated tables',
  async (t) => {
    await server.run('CREATE DATABASE again');
    await open(t, { database: 'again' }).database.schema('otel_logs');
    const engine = open(t, { database: 'again' }).engine;
    const shorter = new Database({
      engine,
      clock: systemClock,
      schema: { database: 'again', retentionDays: 14, replicas: 1 },
    });
    await shorter.schema('otel_logs');
    const [row] = await shorter.query<{ sql: string }>(
      "SELECT create_table_query AS sql FROM system.tables WHERE database = 'again' AND name = 'otel_logs'",
    );
    t.regex(row?.sql ?? '', /toIntervalDay\(14\).*COMMENT 'Holdfast schema 1, 14 days'/s);
    await server.run('CREATE DATABASE twice');
    const replicated = open(t, { database: 'twice', replicas: 2 }).database;
    await t.throwsAsync(replicated.insert('otel_logs', [{ Timestamp: now() }]), {
      code: 'HF_COLUMNAR_SCHEMA',
    });
  },
);
