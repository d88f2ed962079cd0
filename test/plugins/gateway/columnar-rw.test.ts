import test from 'ava';
import { columnar } from '../../../src/plugins/columnar/index.ts';
import { overwrite } from '../../../src/plugins/gateway/index.ts';
import { Rig } from './rig.ts';

test('[G1,C2] without an upstream the route columnar_rw writes tables of its own, each call synced, and nothing else', async (t) => {
  t.timeout(120_000);
  const rig = await Rig.start(t, { routes: [overwrite({ name: 'columnar_rw' })] }, undefined, undefined, [
    columnar(),
  ]);
  const client = await rig.connect(t, 'columnar_rw', await rig.mint({ servers: ['columnar_rw'] }));
  const tool = async (name: string, args: object = {}) => {
    const result = (await client.callTool({ name: `columnar_rw-${name}`, arguments: { ...args } })) as any;
    return { data: result.structuredContent, isError: result.isError === true, text: result.content[0].text };
  };
  const { tools } = await client.listTools();
  const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
  t.like(hints, {
    'columnar_rw-tables': { readOnlyHint: true },
    'columnar_rw-insert': { readOnlyHint: false, destructiveHint: false },
    'columnar_rw-drop_table': { readOnlyHint: false, destructiveHint: true },
  });
  const columns = [
    { name: 'at', type: 'DateTime64(3)' },
    { name: 'what', type: 'String' },
    { name: 'tags', type: 'Array(String)' },
  ];
  const made = await tool('create_table', { table: 'events', columns, orderBy: ['at'], keepDays: 30 });
  t.deepEqual(made.data, { created: 'events' }, made.text);
  const rows = [
    { at: '2026-01-01T00:00:00Z', what: 'one', tags: ['a', 'b'] },
    { at: '2026-01-02T00:00:00Z', what: "two'); DROP TABLE otel_logs; --", tags: [] },
  ];
  const inserted = await tool('insert', { table: 'events', rows });
  t.deepEqual(inserted.data, { table: 'events', inserted: 2 }, inserted.text);
  const page = (await tool('read', { table: 'events', limit: 1 })).data;
  t.like(page, { rows: [{ what: 'one', tags: ['a', 'b'] }], nextOffset: 1 });
  t.like((await tool('read', { table: 'events', offset: 1 })).data, { rows: [{ what: rows[1]?.what }] });
  await tool('add_column', { table: 'events', column: { name: 'more', type: 'Nullable(Int64)' } });
  t.regex(JSON.stringify((await tool('tables')).data), /more Nullable\(Int64\)/);
  for (const [name, args] of [
    ['read', { table: 'telemetry.otel_logs' }],
    ['drop_table', { table: 'otel_logs`; DROP DATABASE telemetry; --' }],
    [
      'create_table',
      { table: 'x', columns: [{ name: 'a', type: "String) ENGINE = File('CSV'" }], orderBy: ['a'] },
    ],
    ['create_table', { table: 'x', columns: [{ name: 'a', type: 'String' }], orderBy: ['b'] }],
    ['read', { table: 'nowhere' }],
  ] as const) {
    t.true((await tool(name, args)).isError, JSON.stringify(args));
  }
  t.deepEqual((await tool('drop_table', { table: 'events' })).data, { dropped: 'events' });
  t.deepEqual((await tool('tables')).data, { tables: [] });

  // The limit is exact, also for calls that come at once, and for a table that gets wider column by column.
  const create = (table: string) =>
    tool('create_table', { table, columns: [{ name: 'a', type: 'String' }], orderBy: ['a'] });
  const all = await Promise.all(Array.from({ length: 104 }, (_, number) => create(`at_once_${number}`)));
  t.is(((await tool('tables')).data as { tables: object[] }).tables.length, 100);
  const late = all.filter(({ isError }) => isError);
  t.is(late.length, 4);
  t.true(late.every(({ text }) => /there are 100 tables already/.test(text)));
  const [made100] = all.flatMap(({ data }) => (data?.created ? [String(data.created)] : []));
  const widen = (number: number) =>
    tool('add_column', { table: made100, column: { name: `c${number}`, type: 'Int64' } });
  const wider = await Promise.all(Array.from({ length: 201 }, (_, number) => widen(number)));
  t.is(wider.filter(({ isError }) => !isError).length, 199);
  t.regex(wider.find(({ isError }) => isError)?.text ?? '', /it has 200 columns already/);
  const calls = (await rig.records()).filter(({ event }) => /^columnar_rw-/.test((event as any).tool ?? ''));
  t.true(calls.length > 8 && calls.every(({ batched }) => batched === undefined));
});
