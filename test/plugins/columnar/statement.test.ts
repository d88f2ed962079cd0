import test from 'ava';
import fc from 'fast-check';
import { isCoded } from '../../../src/core/kernel/errors/holdfast-error.ts';
import {
  ALLOWED,
  ALLOWED_TABLES,
  HIGHER_ORDER,
  mayCall,
  REFUSED,
  REFUSED_TABLES,
} from '../../../src/plugins/columnar/reading/functions.ts';
import { tokensOf } from '../../../src/plugins/columnar/reading/tokens.ts';
import { type ColumnarRig, openColumnar } from '../../support/columnar.ts';
import { runs } from '../../support/runs.ts';

let rig: ColumnarRig;
test.before(async () => {
  rig = await openColumnar();
});
test.after.always(() => rig.close());

const lets = [
  'SELECT 1',
  ' select count() from otel_logs ; ; ',
  "WITH 1 AS x SELECT x FROM otel_logs WHERE Body = 'DROP TABLE x; url(1)' -- url('x')",
  'SHOW TABLES',
  'DESCRIBE otel_logs',
  'EXPLAIN SELECT 1',
  "EXPLAIN indexes = 1 SELECT Body FROM otel_logs WHERE TraceId = 'x'",
  'SELECT * EXCEPT Body APPLY toString FROM otel_logs',
  'WITH 1 AS file SELECT file + 1',
  '(SELECT 1) UNION ALL (SELECT 2)',
  "SELECT Body AS file, file FROM otel_logs WHERE ServiceName = 'it''s' /* ; */",
  'SELECT 1 AS format, 2 AS settings',
  'SELECT Body AS "a b", `ServiceName` FROM telemetry.otel_logs',
  'SHOW CREATE TABLE otel_traces',
  'SHOW FULL TABLES',
  "SELECT SpanAttributes['url'] AS url, max(SpanName) AS show, 1 AS `ü` FROM otel_traces WHERE SpanName = '“ü”' AND `ü` = 1 GROUP BY url -- ‘ü",
  'WITH calls AS (SELECT ServiceName AS hostname FROM otel_traces) SELECT hostname, count() FROM calls GROUP BY hostname',
  'SELECT arrayMap(upper, [ServiceName]), arrayMap(x -> lower(x), [Body]), uniqExactIf(Body, 1), quantile(0.5)(1) FROM otel_logs GROUP BY 1, 2',
  'SELECT * APPLY(toString) FROM otel_logs',
  'SELECT TraceId FROM otel_logs WHERE TraceId IN (SELECT TraceId FROM otel_traces) AND 1 IN (1, 2)',
  'SELECT count() OVER (PARTITION BY ServiceName ORDER BY Timestamp) FROM otel_logs AS l LEFT JOIN otel_traces AS t ON l.TraceId = t.TraceId',
  'SELECT Events.Name AS event FROM otel_traces ARRAY JOIN Events',
  "SHOW TABLES FROM telemetry LIKE 'otel%'",
  'SHOW COLUMNS FROM otel_logs',
  'DESCRIBE TABLE telemetry.otel_logs',
  'DESCRIBE (SELECT 1)',
  'EXISTS TABLE otel_logs',
  'SHOW CREATE TABLE telemetry.otel_logs',
  'EXPLAIN PIPELINE SELECT count() FROM otel_logs',
  'SELECT CAST(1 AS UInt8)::String, toDateTime64(now(), 3), INTERVAL 1 DAY + today(), if(1, 2, 3), CASE WHEN 1 THEN 2 END, tuple(1).1, [1][1]',
  "SELECT '$x$', toDate('2026-01-01') FROM numbers(3)",
];

const refuses = [
  '',
  ' ; ',
  '-- nothing',
  'INSERT INTO otel_logs VALUES (1)',
  'DROP TABLE otel_logs',
  'SET readonly = 0',
  'SYSTEM SHUTDOWN',
  'KILL QUERY WHERE 1',
  'SELECT 1; DROP TABLE otel_logs',
  "SELECT 1 INTO OUTFILE '/tmp/x'",
  'SELECT 1 FORMAT CSV',
  'SELECT 1 SETTINGS max_execution_time = 0',
  "SELECT * FROM file('/etc/passwd')",
  "SELECT file('/etc/passwd')",
  "SELECT * FROM `file`('/etc/passwd')",
  'SELECT * FROM "url"(\'http://x\')',
  "SELECT * FROM url /* x */ ('http://127.0.0.1')",
  "SELECT * FROM s3Cluster('c', 'http://x')",
  "SELECT * FROM remote('x', default.t)",
  "SELECT * FROM merge('system', '.*')",
  "SELECT dictGet('d', 'a', 1)",
  'SELECT * FROM system.query_log',
  'SELECT * FROM `system`.`users`',
  'SELECT * FROM information_schema.tables',
  'SHOW TABLES FROM system',
  "SELECT 'never ends",
  'SELECT `fi\\x6ce`(1)',
  'SELECT $$a$$',
  'SELECT sleepEachRow(1) FROM numbers(100)',
  // Each of these gave the file away.
  "SELECT “file”('/etc/passwd')",
  "SELECT ‘'’, file('/etc/passwd'), ‘'’",
  "SELECT /* /* */ ' */ file('/etc/passwd') -- '",
  "SELECT * APPLY(file) FROM (SELECT '/etc/passwd' AS a)",
  "SELECT COLUMNS('a') APPLY file FROM (SELECT '/etc/passwd' AS a)",
  "SELECT arrayMap(file, ['/etc/passwd'])",
  "SELECT arrayMap((`file`) AS f, ['/etc/passwd'])",
  // These are refused by the engine too; nobody should depend on that.
  "DESCRIBE url('http://127.0.0.1:9')",
  "EXPLAIN SELECT * FROM url('http://127.0.0.1:9')",
  'SELECT 1 PARALLEL WITH DROP TABLE otel_logs',
  "SELECT * REPLACE (file('/etc/passwd') AS Body) FROM otel_logs",
  "WITH (x -> file(x)) AS f SELECT arrayMap(f, ['/etc/passwd'])",
  "SELECT 1 INTO /* x */ OUTFILE '/tmp/x' AND STDOUT",
  "SELECT _CAST(FILE('/etc/passwd'), 'String')",
  "SELECT * FROM viewIfPermitted(SELECT 1 ELSE file('/etc/passwd'))",
  "SELECT * FROM clusterAllReplicas('default', default.otel_logs)",
  'SELECT * FROM (SELECT 1 SETTINGS/**/max_execution_time/**/=/**/0)',
  'EXPLAIN AST SELECT 1',
  'SELECT displayName(), serverUUID()',
  // And these told of the server.
  'SELECT * FROM “system”.“users”',
  'SHOW PROCESSLIST',
  'SHOW CREATE USER default',
  // What each of these reaches is on no list.
  'EXISTS TABLE `/etc/shadow`',
  'EXISTS TABLE default.`/etc/shadow`',
  'EXISTS `/etc/shadow`',
  'DESCRIBE TABLE `/etc/passwd`',
  'DESCRIBE default.`/etc/passwd`',
  'DESCRIBE TABLE `file`(`/etc/passwd`)',
  'SHOW CREATE TABLE `/etc/passwd`',
  'SHOW COLUMNS FROM `/etc/passwd`',
  'SHOW COLUMNS FROM users FROM system',
  'SHOW COLUMNS FROM system.users',
  'SHOW INDEX FROM users IN system',
  "SHOW TABLES WHERE file('/etc/passwd') != ''",
  'SHOW TABLES FROM default',
  "SHOW SETTINGS LIKE 'a%'",
  "SHOW CHANGED SETTINGS LIKE 'a%'",
  'SHOW CLUSTERS',
  'SHOW DICTIONARIES',
  'SHOW ENGINES',
  'SHOW FUNCTIONS',
  'EXISTS DATABASE system',
  'EXISTS DICTIONARY d',
  'SHOW CREATE DATABASE default',
  "SELECT hasColumnInTable('system', 'users', 'name')",
  "SELECT HASCOLUMNINTABLE('system', 'users', 'name')",
  "SELECT getSetting('readonly'), GetSettingOrDefault('x', 1)",
  "SELECT arrayMap(x -> getSetting(x), ['readonly'])",
  "SELECT arrayMap(getSetting, ['readonly'])",
  "SELECT arrayExists((getSetting) AS g, ['readonly'])",
  "WITH (x -> x) AS getSetting SELECT getSetting('readonly')",
  "SELECT * FROM (SELECT * FROM (SELECT * FROM `FILE`('/etc/passwd', 'CSV')))",
  "WITH a AS (WITH b AS (SELECT file('/etc/passwd') AS c) SELECT * FROM b) SELECT * FROM a",
  "SELECT 1 WHERE 1 IN (SELECT 1 FROM file('/etc/passwd'))",
  'SELECT 1 IN system.one',
  'SELECT 1 GLOBAL NOT IN `system`.one',
  'SELECT 1 IN `/etc/passwd`',
  "SELECT 1 IN file('/etc/passwd')",
  "SELECT * FROM '/etc/passwd'",
  'SELECT * FROM `/etc/passwd`',
  'SELECT * FROM "../../../etc/passwd"',
  'SELECT * FROM default.otel_logs',
  'SELECT * FROM INFORMATION_SCHEMA.TABLES',
  'SELECT * FROM telemetry.otel_logs, system.one',
  'SELECT * FROM otel_logs JOIN system.users AS u ON 1 = 1',
  'SELECT * FROM view(SELECT * FROM system.users)',
  "SELECT * FROM viewExplain('EXPLAIN', '', (SELECT * FROM system.users))",
  'SELECT * FROM (EXPLAIN SELECT * FROM system.users)',
  'EXPLAIN PIPELINE SELECT * FROM system.users',
  'EXPLAIN QUERY TREE SELECT getSetting(1)',
  'EXPLAIN ESTIMATE SELECT * FROM system.users',
  'EXPLAIN CURRENT TRANSACTION',
  "SELECT * FROM executable('x', 'TSV', 'a String')",
  "SELECT * FROM merge('.*')",
  "SELECT * FROM cluster('default', system.one)",
  "SELECT * FROM input('a String')",
  'SELECT * FROM loop(otel_logs)',
  "SELECT * FROM dictionary('d')",
  "SELECT * FROM eval('SELECT 1')",
  "SELECT * FROM filesystem('/etc')",
  "SELECT * FROM generateRandom('a String')",
  "SELECT * FROM format(CSV, '1')",
  'SELECT * FROM parametrised(p = 1)',
  "SELECT joinGet('system.one', 'dummy', 1)",
  "SELECT dictGet('d', 'a', 1), dictGetOrDefault('d', 'a', 1, 2)",
  'SELECT userDefined(1)',
  'SELECT sleep(3)',
  'SELECT SLEEP(3)',
  'SELECT `sleepEachRow`(1)',
  'SELECT sumIf(sleep(1), 1), sleepIf(1)',
  'SELECT * APPLY sleep FROM (SELECT 1)',
  "SELECT * APPLY(x -> file(x)) FROM (SELECT '/etc/passwd')",
  "SELECT COLUMNS('.*') APPLY toString APPLY file FROM (SELECT '/etc/passwd')",
  'SELECT count() OVER (PARTITION BY sleep(1)) FROM otel_logs',
  'SELECT 1 ORDER BY sleep(1) WITH FILL INTERPOLATE (a AS sleep(1))',
  'SELECT 1 LIMIT sleep(1)',
  "SELECT 1 UNION ALL SELECT getSetting('x')",
  "(SELECT 1) INTERSECT (SELECT getSetting('x'))",
  'SELECT 1 FROM otel_logs PREWHERE sleep(1) QUALIFY sleep(1)',
  'SELECT * FROM (SELECT 1 SETTINGS max_memory_usage = 0)',
  'SELECT * FROM otel_logs SETTINGS readonly = 0',
  'EXPLAIN SELECT 1 SETTINGS max_execution_time = 0',
  'EXECUTE AS default SELECT 1',
  'SELECT hostName(), user(), currentUser(), uptime(), tcpPort()',
  'SELECT @@version',
];

/** Names that the engine's parser hides from its own tree, or that its text could be mistaken for. */
const disguises = [
  'SELECT 1 AS `x\nFunction`, getSetting(1)',
  'SELECT `getSetting (alias x)`(1)',
  "SELECT 1 AS `a` /* getSetting */ , /*!50000 getSetting('readonly') */ 2 AS b, getSetting('readonly')",
  'SELECT 1 -- \n ; SELECT 2\n, sleep(1)',
  'SELECT # ! sleep\n sleep(1)',
  'SELECT sleep/**/(1)',
  'SELECT\u00a0sleep(1)',
  'SELECT "sl\\x65ep"(1)',
  'SELECT ｓleep(1)',
  'SELECT 1 FROM (SHOW GRANTS)',
  "SELECT 1 INTO OUTFILE '/tmp/x' TRUNCATE FORMAT TSV",
  'SELECT 1 format TSV',
  'SELECT 1 settings readonly = 0',
  'SELECT 1\\G',
  '{"a": 1}',
  'BEGIN TRANSACTION',
  'SELECT {a:String}, {b:Identifier}',
  'FROM system.users SELECT *',
];

test.serial('[O20] what reads the signals is run', async (t) => {
  for (const sql of lets) await t.notThrowsAsync(rig.database.ask(sql, 10), sql);
});

test.serial(
  '[O20] what writes, reads elsewhere or holds more than one statement is refused with a reason',
  async (t) => {
    for (const sql of refuses)
      await t.throwsAsync(rig.database.ask(sql, 10), { code: 'HF_COLUMNAR_REFUSED' }, sql);
  },
);

test.serial('[O20] a disguised name is refused, or no statement to the engine', async (t) => {
  for (const sql of disguises) {
    const error = await t.throwsAsync(rig.database.ask(sql, 10), undefined, sql);
    t.true(
      isCoded(error, 'HF_COLUMNAR_REFUSED') ||
        (isCoded(error, 'HF_COLUMNAR_QUERY') && /Syntax error|Substitution/.test(error.message)),
      `${sql}: ${error?.message}`,
    );
  }
});

test.serial('[O20] a function on no list is refused wherever it stands, by its name', async (t) => {
  const names = [...REFUSED].filter((name) => !REFUSED_TABLES.has(name) && /^\w+$/.test(name));
  const place = fc.constantFrom(
    (call: string) => `SELECT ${call}`,
    (call: string) => `SELECT 1 WHERE ${call} = 1`,
    (call: string) => `WITH ${call} AS a SELECT a`,
    (call: string) => `SELECT arrayMap(x -> ${call}, [1])`,
    (call: string) => `SELECT * FROM (SELECT 1 AS a ORDER BY ${call})`,
    (call: string) => `SELECT * FROM numbers(${call})`,
    (call: string) => `SELECT 1 FROM otel_logs GROUP BY ${call} HAVING 1`,
    (call: string) => `EXPLAIN SELECT * REPLACE (${call} AS Body) FROM otel_logs`,
    (call: string) => `SELECT sum(1) OVER (PARTITION BY ${call})`,
    (call: string) => `SELECT 1 AS a LIMIT 1 BY ${call}`,
    (call: string) => `SELECT CASE WHEN ${call} THEN 1 END`,
    (call: string) => `SELECT quantileIf(0.5)(1, ${call})`,
  );
  const spell = fc.constantFrom(
    (name: string) => name,
    (name: string) => name.toUpperCase(),
    (name: string) => `\`${name}\``,
    (name: string) => `"${name}" /* () */ `,
  );
  const refusedNames = fc.asyncProperty(
    fc.constantFrom(...names),
    place,
    spell,
    async (name, put, spelled) => {
      const sql = put(`${spelled(name)}('x', 1)`);
      const error = await t.throwsAsync(rig.database.ask(sql, 10), { code: 'HF_COLUMNAR_REFUSED' }, sql);
      return String(error?.message).toLowerCase().includes(`${name}()`);
    },
  );
  await fc.assert(refusedNames, { numRuns: runs(100) });
});

test.serial(
  '[O20] the engine itself refuses the process what reaches outside, whatever checks the text',
  async (t) => {
    for (const from of [
      "file('/etc/hostname', 'LineAsString')",
      "url('http://127.0.0.1:9', 'LineAsString')",
      "filesystem('/etc')",
      "remote('127.0.0.1:9', system.one)",
      'default.`/etc/hostname`',
    ])
      await t.throwsAsync(
        rig.database.query(`SELECT * FROM ${from}`),
        { message: /Not enough privileges/ },
        from,
      );
    await t.throwsAsync(rig.database.query('SELECT * FROM `/etc/hostname`'), {
      message: /UNKNOWN_TABLE|does not exist|Unknown table/,
    });
  },
);

test.serial('[O20] memory, disk and answer of a query are bounded', async (t) => {
  const tooMuch = 'SELECT groupArray(number) FROM numbers(1000000000)';
  await t.throwsAsync(rig.database.ask(tooMuch, 10), { message: /memory/i });
});

test.serial('[O20] no text makes the check of words slow or fail otherwise', (t) => {
  const piece = fc.constantFrom(
    "'",
    '`',
    '"',
    '\\',
    '--',
    '/*',
    '*/',
    ';',
    '(',
    ')',
    '$',
    'SELECT',
    'file',
    ' ',
    '\n',
    'x',
    '#',
  );
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(piece, { maxLength: 200 }).map((all) => all.join('')),
  );
  fc.assert(
    fc.property(text, (sql) => {
      try {
        return Array.isArray(tokensOf(`SELECT ${sql}`));
      } catch (error) {
        return isCoded(error, 'HF_COLUMNAR_REFUSED');
      }
    }),
    { numRuns: runs(2_000) },
  );
  for (const part of ['\\', '/*', "'\\", '$x'])
    t.throws(() => tokensOf(`SELECT '${part.repeat(50_000)}`), { code: 'HF_COLUMNAR_REFUSED' });
  t.throws(() => tokensOf(`SELECT ${'/*'.repeat(50_000)}`), { code: 'HF_COLUMNAR_REFUSED' });
});

test.serial(
  '[O20] every function of the engine is allowed or refused knowingly, and none is both',
  async (t) => {
    const functions = await rig.database.query<{ name: string }>('SELECT name FROM system.functions');
    const unknown = functions
      .map(({ name }) => name)
      .filter((name) => !mayCall(name) && !REFUSED.has(name.toLowerCase()));
    t.deepEqual(unknown, [], 'look at what they do, then add them to one list');
    t.deepEqual(
      [...ALLOWED].filter((name) => REFUSED.has(name)),
      [],
    );
    const tables = await rig.database.query<{ name: string }>(
      'SELECT lower(name) AS name FROM system.table_functions',
    );
    t.deepEqual(
      tables.map(({ name }) => name).filter((name) => ALLOWED_TABLES.has(name) === REFUSED_TABLES.has(name)),
      [],
    );
    const taking = await rig.database.query<{ name: string }>(
      'SELECT lower(name) AS name FROM system.functions WHERE higher_order = 1',
    );
    t.deepEqual(
      taking.map(({ name }) => name).filter((name) => !HIGHER_ORDER.has(name)),
      [],
    );
  },
);
