import type { DatabaseSync, SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import { sound } from './schema.ts';

/** The statements by which a log is read, each prepared once: to prepare one takes as long as to read a record. */
export class Statements {
  readonly #db: DatabaseSync;
  /** By their text. */
  readonly #prepared = new Map<string, StatementSync>();

  constructor(db: DatabaseSync) {
    this.#db = db;
  }

  prepare(sql: string): StatementSync {
    const known = this.#prepared.get(sql);
    if (known) return known;
    const statement = this.#db.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }

  /** The first row; undefined without one. */
  get(sql: string, ...values: SQLInputValue[]): Record<string, SQLOutputValue> | undefined {
    return sound(() => this.prepare(sql).get(...values));
  }

  /** All rows. */
  all(sql: string, ...values: SQLInputValue[]): Record<string, SQLOutputValue>[] {
    return sound(() => this.prepare(sql).all(...values));
  }

  /** The first column of the first row; undefined without a row, or when the column is not text. */
  text(sql: string, ...values: SQLInputValue[]): string | undefined {
    const value = Object.values(this.get(sql, ...values) ?? {})[0];
    return typeof value === 'string' ? value : undefined;
  }

  /** The first column of the first row; 0 without a row, or when the column is not a number. */
  number(sql: string, ...values: SQLInputValue[]): number {
    const value = Object.values(this.get(sql, ...values) ?? {})[0];
    return typeof value === 'number' ? value : 0;
  }
}
