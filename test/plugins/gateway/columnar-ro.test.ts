import type { Client } from '@modelcontextprotocol/sdk/client/index.js';
import test from 'ava';
import { SIGNAL_TABLES } from '../../../src/core/contracts/columnar-tables.ts';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { overwrite } from '../../../src/plugins/gateway/index.ts';
import { Rig } from './rig.ts';

const call = async (client: Client, name: string, args: object = {}) => {
  const result = (await client.callTool({ name: `columnar_ro-${name}`, arguments: { ...args } })) as any;
  return { data: result.structuredContent, isError: result.isError === true, text: result.content[0].text };
};

test('[G1,O20] without an upstream the route columnar_ro reads the database of this process, in the lane of the commands', async (t) => {
  t.timeout(120_000);
  const rig = await Rig.start(t, { routes: [overwrite({ name: 'columnar_ro' })] }, undefined, undefined, [
    columnar(),
  ]);
  const client = await rig.connect(t, 'columnar_ro', await rig.mint({ servers: ['columnar_ro'] }));
  const { tools } = await client.listTools();
  t.deepEqual(tools.map(({ name }) => name.slice('columnar_ro-'.length)).sort(), [
    'nas',
    'query',
    'retention',
    'schema',
    'tables',
    'verify',
  ]);
  t.true(tools.every(({ annotations }) => annotations?.readOnlyHint === true));

  const logs = await call(client, 'schema', { table: 'otel_logs' });
  t.true(
    logs.data.columns.some(({ name }: any) => name === 'Body'),
    logs.text,
  );
  const { data } = await call(client, 'query', {
    sql: 'SELECT number AS n, toString(number) AS text FROM numbers(5)',
    limit: 3,
  });
  t.like(data, { truncated: true });
  t.deepEqual(
    data.columns.map(({ name }: any) => name),
    ['n', 'text'],
  );
  t.is(data.rows.length, 3);
  for (const sql of [
    'INSERT INTO otel_logs (Body) VALUES (1)',
    'DROP TABLE otel_logs',
    "SELECT * FROM file('/etc/passwd')",
    'SELECT 1; SELECT 2',
  ]) {
    const refused = await call(client, 'query', { sql });
    t.true(refused.isError, sql);
    t.regex(refused.text, /^HF_COLUMNAR_/);
  }
  const verified = await call(client, 'verify');
  t.is(verified.data.signals.flatMap(({ tables }: any) => tables).length > 0, true, verified.text);
  t.true(verified.data.findings.length > 0, 'an empty database is no healthy one');
  const { tables } = (await call(client, 'tables')).data;
  t.true(SIGNAL_TABLES.every((table) => JSON.stringify(tables).includes(table)));
});
