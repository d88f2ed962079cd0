import test from 'ava';
import { SIGNAL_TABLES } from '../../../src/core/contracts/columnar-tables.ts';
import type { CheckResult } from '../../../src/core/host/plugin/diagnosis.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { databaseChecks } from '../../../src/plugins/columnar/checks.ts';
import { Database } from '../../../src/plugins/columnar/database.ts';
import { RemoteEngine } from '../../../src/plugins/columnar/engine/remote.ts';
import { columnarOptions } from '../../../src/plugins/columnar/options.ts';
import {
  judgeReplicas,
  replicasCheck,
  retentionCheck,
} from '../../../src/plugins/columnar/questions/kept.ts';
import { type ColumnarServer, startColumnarServer } from '../../support/columnar-server.ts';
import { tempDir } from '../../support/temp.ts';

let server: ColumnarServer;
test.before(async () => {
  server = await startColumnarServer();
});
test.after.always(() => server.close());
test.beforeEach(() => {
  server.fault = 'none';
});

function open(database: string): Database {
  const engine = new RemoteEngine({
    url: server.url,
    user: 'default',
    database,
    password: async () => '',
    ca: () => undefined,
  });
  return new Database({ engine, clock: systemClock, schema: { database, retentionDays: 30, replicas: 1 } });
}

let made = 0;
/** A database with tables of somebody else. */
async function foreign(tables: Readonly<Record<string, string>>): Promise<string> {
  made += 1;
  const name = `kept_${made}`;
  await server.run(`CREATE DATABASE ${name}`);
  for (const [table, end] of Object.entries(tables)) {
    const columns =
      'Timestamp DateTime64(9), TimestampTime DateTime DEFAULT toDateTime(Timestamp), Days UInt16, Body String';
    await server.run(
      `CREATE TABLE ${name}.${table} (${columns}) ENGINE = MergeTree PARTITION BY toDate(TimestampTime) ORDER BY Timestamp ${end}`,
    );
  }
  return name;
}

const cases: readonly [string, string, CheckResult['state'], RegExp][] = [
  [
    '30 days',
    'TTL TimestampTime + INTERVAL 30 DAY SETTINGS ttl_only_drop_parts = 1',
    'ok',
    /1 table for 30 days or more/,
  ],
  ['14 days', "TTL toDateTime(Timestamp) + toIntervalDay(14) COMMENT 'x'", 'ok', /for 14 days/],
  ['two weeks', 'TTL TimestampTime + INTERVAL 2 WEEK DELETE', 'ok', /for 14 days/],
  ['no TTL', '', 'ok', /for ever, because there is no TTL/],
  ['recompression alone', 'TTL TimestampTime + INTERVAL 1 DAY RECOMPRESS CODEC(ZSTD(3))', 'ok', /for ever/],
  [
    '13 days',
    'TTL TimestampTime + INTERVAL 13 DAY',
    'fail',
    /otel_logs keeps its rows for 13 days: less than 14/,
  ],
  ['335 hours', 'TTL TimestampTime + toIntervalHour(335)', 'fail', /for 13\.96 days/],
  [
    'the shorter of two',
    "TTL TimestampTime + INTERVAL 30 DAY DELETE, TimestampTime + INTERVAL 3 DAY DELETE WHERE Body = 'x'",
    'unknown',
    /not understood: otel_logs \(.*WHERE/,
  ],
  [
    'a TTL by row',
    'TTL TimestampTime + toIntervalDay(Days)',
    'unknown',
    /not understood: otel_logs \(.*Days/,
  ],
];

for (const [what, end, state, found] of cases) {
  test.serial(`[O6] a foreign table with ${what} is ${state}`, async (t) => {
    const name = await foreign({ otel_logs: end });
    const seen = await retentionCheck(open(name), name, {});
    t.is(seen.state, state, seen.found);
    t.regex(seen.found, found);
  });
}

test.serial(
  '[O6] one short table among others fails, and a database without tables is unknown',
  async (t) => {
    const long = 'TTL TimestampTime + INTERVAL 30 DAY';
    const mixed = await foreign({
      otel_traces: long,
      otel_logs: '',
      otel_metrics_sum: 'TTL TimestampTime + INTERVAL 7 DAY',
    });
    t.regex(
      (await retentionCheck(open(mixed), mixed, {})).found,
      /^otel_metrics_sum keeps its rows for 7 days: less/,
    );
    const empty = await foreign({ other: long });
    t.is((await retentionCheck(open(empty), empty, {})).state, 'unknown');
    const ours = await foreign({});
    const database = open(ours);
    for (const table of SIGNAL_TABLES) await database.schema(table);
    t.like(await retentionCheck(database, ours, {}), {
      found: 'rows are kept in 7 tables for 30 days or more',
    });
  },
);

test.serial('[O29] the health of replicas is what system.replicas says of each table', async (t) => {
  const name = await foreign({ otel_logs: '' });
  t.like(await replicasCheck(open(name), name, 1, {}), { state: 'ok' });
  t.like(await replicasCheck(open(name), name, 2, {}), { state: 'fail' });
  const well = { table: 'otel_logs', readonly: 0, expired: 0, delay: '3', total: 2, active: 2 };
  t.like(judgeReplicas([well], 2), { state: 'ok', found: '1 table, 2 replicas active of each' });
  const losses: [object, RegExp][] = [
    [{ readonly: 1 }, /takes no writes/],
    [{ expired: 1 }, /has lost its session/],
    [{ delay: '301' }, /is 301 s behind/],
    [{ active: 1 }, /1 of 2 replicas of otel_logs are active/],
    [{ total: 1, active: 1 }, /has 1 of 2 replicas/],
  ];
  for (const [change, found] of losses) {
    const seen = judgeReplicas(
      [
        { ...well, table: 'otel_traces' },
        { ...well, ...change },
      ],
      2,
    );
    t.is(seen.state, 'fail');
    t.regex(seen.found, found);
    t.truthy(seen.remedy);
  }
});

test.serial('[O29] a database that does not answer leaves retention and replicas unknown', async (t) => {
  const options = columnarOptions.parse({ url: server.url });
  const states = async () => {
    const checks = databaseChecks(options).filter(({ name }) => /retention|replicas/.test(name));
    t.is(checks.length, 2);
    return Promise.all(
      checks.map(
        async ({ run }) => (await run({ dataDir: tempDir(t), signal: AbortSignal.timeout(20_000) })).state,
      ),
    );
  };
  await open('default').schema('otel_logs');
  t.deepEqual(await states(), ['ok', 'ok']);
  for (const fault of ['reset', 'old', 'full'] as const) {
    server.fault = fault;
    t.deepEqual(await states(), ['unknown', 'unknown'], fault);
  }
  const none = databaseChecks(columnarOptions.parse({})).slice(0, 4);
  for (const { run } of none) {
    t.is((await run({ dataDir: tempDir(t), signal: AbortSignal.timeout(20_000) })).state, 'unknown');
  }
});
