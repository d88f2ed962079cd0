/**
 * The rows of the signal tables as the columnar database takes them: `columns.ts` has the columns of our own schema,
 * `fit.ts` how a value is written for the type that a column really has, `writer.ts` makes lines of rows, once, so that
 * whoever decodes telemetry writes what is inserted in the end.
 *
 * Imports the interface of the columnar database. Pure; it also runs in threads.
 */
export { type Columns, ownSchema, SIGNAL_COLUMNS } from './columns.ts';
export { type RowWriter, rowsOf, writerOf } from './writer.ts';
