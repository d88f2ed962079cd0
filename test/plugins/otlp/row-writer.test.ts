import test from 'ava';
import type { TableShape } from '../../../src/core/contracts/columnar-database.ts';
import { RowWriter } from '../../../src/plugins/otlp/decode/row-writer.ts';

const ROW = { ServiceName: 'shop', SpanName: 'pay', SpanKind: 'Server', StatusCode: 'Ok' };

/** The values of that row by column, as a table of these columns gets them. */
function written(columns: readonly string[], enumNames: TableShape['enumNames']) {
  const types = columns.map((name) => [name, 'LowCardinality(String)'] as const);
  const writer = new RowWriter({ table: 'otel_traces', columns: new Map(types), enumNames });
  const values: unknown[] = JSON.parse(writer.line(writer.scope(ROW), ROW));
  return Object.fromEntries(writer.columns.map((name, index) => [name, values[index]]));
}

test('[O6] kinds and codes are written by the names that the table holds', (t) => {
  const columns = ['ServiceName', 'SpanName', 'SpanKind', 'StatusCode'];
  t.deepEqual(written(columns, 'short'), ROW);
  t.deepEqual(written(columns, 'prefixed'), {
    ...ROW,
    SpanKind: 'SPAN_KIND_SERVER',
    StatusCode: 'STATUS_CODE_OK',
  });
});

test('[O6] a table that lacks all columns of the scope, or all others, gets the rest', (t) => {
  t.deepEqual(written(['SpanName', 'SpanKind'], 'short'), { SpanName: 'pay', SpanKind: 'Server' });
  t.deepEqual(written(['ServiceName'], 'short'), { ServiceName: 'shop' });
});
