import type {
  AttributesColumn,
  QueryParameter,
  TableSchema,
} from '../../../core/contracts/columnar-database.ts';
import type { TimeRange } from '../../../core/host/history/time-ranges.ts';
import { ColumnarError } from '../errors.ts';

/** Attributes that one may filter by at once. */
const MOST_ATTRIBUTES = 8;

const UNITS: Readonly<Record<string, number>> = {
  ns: 1,
  us: 1e3,
  µs: 1e3,
  ms: 1e6,
  s: 1e9,
  m: 60e9,
  min: 60e9,
  h: 3_600e9,
};

/** The `WHERE` of a search. What a person typed is bound as a parameter, and never a part of the text. */
export class Conditions {
  readonly #clauses: string[] = [];
  readonly parameters: Record<string, QueryParameter> = {};

  /** @param sql of our own @param parameters for it */
  add(sql: string, parameters: Readonly<Record<string, QueryParameter>> = {}): this {
    this.#clauses.push(sql);
    Object.assign(this.parameters, parameters);
    return this;
  }

  /** The same for something that may be left empty. */
  addIf(value: string | undefined, sql: string, name: string): this {
    return value === undefined ? this : this.add(sql, { [name]: value });
  }

  /** Rows of the range: the column is compared as it is, so that the engine can leave out parts of the table. */
  within(column: string, { from, to }: TimeRange): this {
    return this.add(
      `${column} > fromUnixTimestamp64Milli({from:Int64}) AND ${column} <= fromUnixTimestamp64Milli({to:Int64})`,
      { from, to },
    );
  }

  /**
   * Rows with each of these attributes in one of the columns.
   *
   * @param typed `name=value`, or `name` of one that only has to be there; several with spaces between
   * @throws HF_COLUMNAR_FILTER
   */
  attributes(typed: string | undefined, schema: TableSchema, columns: readonly AttributesColumn[]): this {
    const wanted = [...(typed ?? '').matchAll(/([^\s=]+)(?:=("[^"]*"|\S*))?/g)];
    if (wanted.length > MOST_ATTRIBUTES)
      throw new ColumnarError('HF_COLUMNAR_FILTER', {
        name: 'attribute',
        reason: `it names ${wanted.length} attributes, and at most ${MOST_ATTRIBUTES} are compared`,
      });
    for (const [index, [, name = '', value]] of wanted.entries()) {
      const [key, compared] = [`attribute${index}`, `value${index}`];
      const test = value === undefined ? "!= ''" : `= {${compared}:String}`;
      const each = columns.map((column) => `${schema.attribute(column, `{${key}:String}`)} ${test}`);
      this.add(`(${each.join(' OR ')})`, {
        [key]: name,
        ...(value !== undefined && { [compared]: value.replace(/^"|"$/g, '') }),
      });
    }
    return this;
  }

  get sql(): string {
    return this.#clauses.join(' AND ');
  }
}

/** @param typed e.g. `250ms` or `1.5s`; a number alone is milliseconds @returns nanoseconds @throws HF_COLUMNAR_FILTER */
export function nanosOf(typed: string | undefined): number | undefined {
  if (typed === undefined) return undefined;
  const [, number, unit = 'ms'] = /^(\d+(?:\.\d+)?)\s*([a-zµ]+)?$/.exec(typed.trim()) ?? [];
  const factor = UNITS[unit];
  if (number !== undefined && factor !== undefined) return Math.round(Number(number) * factor);
  throw new ColumnarError('HF_COLUMNAR_FILTER', {
    name: 'least',
    reason: 'a duration is written as 250ms, 1.5s or 2m',
  });
}
