import type {
  ColumnarDatabase,
  InsertOptions,
  SignalRow,
  TableSchema,
  WrittenRows,
} from '../../../src/core/contracts/columnar-database.ts';
import type { SignalTable } from '../../../src/core/contracts/columnar-tables.ts';
import { ColumnarError } from '../../../src/plugins/columnar/errors.ts';
import { defaultShape, readRows, writerOf } from '../../../src/plugins/otlp/decode/row-writer.ts';

/** A database that fails on demand, which a real one does not; what it takes is what a real one would have. */
export class FailingDatabase implements ColumnarDatabase {
  readonly kind = 'remote';
  readonly place = 'clickhouse.test:8123';
  readonly inserted: { table: SignalTable; rows: readonly SignalRow[]; token: string | undefined }[] = [];
  /** Why it takes nothing now. */
  fault: 'HF_COLUMNAR_UNREACHABLE' | 'HF_COLUMNAR_QUERY' | undefined;
  /** Rows are taken, and then the answer is lost. */
  answersGetLost = false;
  /** Tables that it refuses. */
  readonly refusing = new Set<SignalTable>();
  /** Inserts wait for it. */
  gate: Promise<void> = Promise.resolve();
  tries = 0;

  get names(): unknown[] {
    return this.inserted.flatMap(({ rows }) => rows.map((row) => row.SpanName));
  }

  async insert(
    table: SignalTable,
    rows: readonly SignalRow[] | WrittenRows,
    { token }: InsertOptions = {},
  ): Promise<void> {
    this.tries += 1;
    await this.gate;
    const fault = this.refusing.has(table) ? 'HF_COLUMNAR_QUERY' : this.fault;
    if (fault) throw new ColumnarError(fault, { place: this.place, reason: 'it is a test' });
    if (token !== undefined && this.inserted.some((batch) => batch.token === token)) return;
    this.inserted.push({ table, rows: rowsOf(rows), token });
    if (this.answersGetLost)
      throw new ColumnarError('HF_COLUMNAR_UNREACHABLE', { place: this.place, reason: 'it was cut off' });
  }

  query(): never {
    throw new Error('not used');
  }

  ask(): never {
    throw new Error('not used');
  }

  async schema(table: SignalTable): Promise<TableSchema> {
    return { ...defaultShape(table), engine: 'MergeTree', isOurs: true, attribute: () => '' };
  }

  drift(): never {
    throw new Error('not used');
  }
}

function rowsOf(rows: readonly SignalRow[] | WrittenRows): readonly SignalRow[] {
  return 'bytes' in rows ? readRows(writerOf(rows.schema).layout, rows.bytes) : rows;
}
