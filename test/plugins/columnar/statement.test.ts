import test from 'ava';
import fc from 'fast-check';
import { isCoded } from '../../../src/core/kernel/errors/holdfast-error.ts';
import { readingStatement } from '../../../src/plugins/columnar/statement.ts';
import { runs } from '../../support/runs.ts';

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
  'SELECT "a b", `c` FROM otel_logs',
  'SHOW CREATE TABLE otel_traces',
  'SHOW FULL TABLES',
  "SELECT url, SpanAttributes['url'] AS url, max(show) FROM otel_traces WHERE Body = '“ü”' AND `ü` = 1 -- ‘ü",
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
  'SELECT * FROM (SHOW GRANTS)',
  'SHOW CREATE USER default',
];

test('[O20] what reads is let through as it is', (t) => {
  for (const sql of lets) t.is(readingStatement(sql), sql.trim().replace(/(\s*;)+$/, ''), sql);
});

test('[O20] what writes, reads elsewhere or holds more than one statement is refused with a reason', (t) => {
  for (const sql of refuses) t.throws(() => readingStatement(sql), { code: 'HF_COLUMNAR_REFUSED' }, sql);
});

test('[O20] no text makes the check slow or fail otherwise', (t) => {
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
        return typeof readingStatement(`SELECT ${sql}`) === 'string';
      } catch (error) {
        return isCoded(error, 'HF_COLUMNAR_REFUSED');
      }
    }),
    { numRuns: runs(2_000) },
  );
  for (const part of ['\\', '/*', "'\\", '$x'])
    t.throws(() => readingStatement(`SELECT '${part.repeat(50_000)}`), { code: 'HF_COLUMNAR_REFUSED' });
  t.throws(() => readingStatement(`SELECT ${'/*'.repeat(50_000)}`), { code: 'HF_COLUMNAR_REFUSED' });
});
