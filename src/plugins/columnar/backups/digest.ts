/** What tables hold, as numbers that no order of rows changes: rows, sum and exclusive or of their hashes. */
import type { TableDigest } from '../../../machines/columnar/backups.ts';

/** Runs a query. @returns rows by their columns' names, numbers as decimal texts */
export type Ask = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** A name between backticks. */
const quoted = (name: string): string => `\`${name.replace(/[\\`]/g, '\\$&')}\``;
const text = (value: string): string => `'${value.replace(/[\\']/g, '\\$&')}'`;

/** Tables of a database that keep rows. @throws what the engine throws */
export async function tablesOf(database: string, ask: Ask): Promise<string[]> {
  const rows = await ask(
    `SELECT name FROM system.tables WHERE database = ${text(database)} AND engine LIKE '%MergeTree' ORDER BY name`,
  );
  return rows.map(({ name }) => String(name));
}

/**
 * Reads every row of a table.
 *
 * @param parts only rows of these parts; every row unless given
 * @throws what the engine throws
 */
export async function digestOf(
  database: string,
  table: string,
  ask: Ask,
  parts?: readonly string[],
): Promise<TableDigest> {
  if (parts?.length === 0) return { table, rows: '0', sum: '0', xor: '0' };
  const where = parts ? ` WHERE _part IN (${parts.map(text).join(', ')})` : '';
  const [row] = await ask(
    `SELECT toString(count()) AS rows, toString(sum(cityHash64(*))) AS sum, toString(groupBitXor(cityHash64(*))) AS xor
     FROM ${quoted(database)}.${quoted(table)}${where}`,
  );
  return { table, rows: String(row?.rows), sum: String(row?.sum), xor: String(row?.xor) };
}

/** What differs between the recorded and the restored tables, as sentences; none when they are the same. */
export function differences(recorded: readonly TableDigest[], restored: readonly TableDigest[]): string[] {
  const found = new Map(restored.map((digest) => [digest.table, digest]));
  const names = new Set(recorded.map(({ table }) => table));
  return [
    ...recorded.flatMap(({ table, rows, sum, xor }) => {
      const other = found.get(table);
      if (!other) return [`the table ${table} is missing`];
      if (other.rows !== rows) return [`${table} has ${other.rows} rows, and ${rows} were backed up`];
      return other.sum === sum && other.xor === xor ? [] : [`the rows of ${table} have another content`];
    }),
    ...restored.flatMap(({ table }) => (names.has(table) ? [] : [`the table ${table} was not backed up`])),
  ];
}
