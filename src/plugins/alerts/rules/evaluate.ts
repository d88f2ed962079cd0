import type {
  ColumnarDatabase,
  QueryParameter,
  TableSchema,
} from '../../../core/contracts/columnar-database.ts';
import { msOf } from '../../../core/host/duration.ts';
import type { Measure, Rule } from './rule.ts';

/** The result of an evaluation; no value means no data, and never zero. */
export interface Evaluation {
  readonly value?: number;
  readonly finding?: string;
}

interface Query {
  readonly sql: string;
  readonly parameters: Readonly<Record<string, QueryParameter>>;
}

const TAKE: Readonly<Record<Measure['take'], string>> = {
  max: 'max(Value)',
  min: 'min(Value)',
  last: 'argMax(Value, TimeUnix)',
  sum: 'sum(Value)',
  count: 'toFloat64(count())',
  age: '({now:Float64} - max(Value)) / 3600',
};
/** Causes that an alert names. */
const NAMED = 10;

/**
 * Evaluates a rule once.
 *
 * @param now epoch milliseconds, the end of the window
 * @throws HF_COLUMNAR_*
 */
export async function evaluate(
  rule: Rule,
  database: ColumnarDatabase,
  now: number,
  signal: AbortSignal,
): Promise<Evaluation> {
  const { samples, value } = await measured(rule.measure, rule.window, database, now, signal);
  const found = samples > 0 && Number.isFinite(value) ? value : undefined;
  const wrong =
    found === undefined
      ? rule.onNoData === 'fire'
      : rule.above === undefined
        ? found < (rule.below ?? 0)
        : found > rule.above;
  const finding = wrong ? await causeOf(rule, database, now, signal) : undefined;
  return { ...(found !== undefined && { value: round(found) }), ...(finding && { finding }) };
}

/** The cause of a wrong value: which attribute values have it, or what another metric shows. */
async function causeOf(
  rule: Rule,
  database: ColumnarDatabase,
  now: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const causes: string[] = [];
  if (rule.nameBy !== undefined) {
    const schema = await schemaOf(rule.measure, database);
    const { from, where, parameters } = samplesOf(rule.measure, rule.window, now, schema);
    const bound = rule.above === undefined ? 'Value < {bound:Float64}' : 'Value > {bound:Float64}';
    const rows = await database.query<{ name: string }>(
      `SELECT DISTINCT ${schema.attribute('Attributes', '{by:String}')} AS name FROM ${from} WHERE ${where} AND ${bound} ORDER BY name LIMIT ${NAMED + 1}`,
      { ...parameters, by: rule.nameBy, bound: rule.above ?? rule.below ?? 0 },
      { signal },
    );
    const names = rows.map(({ name }) => name).filter((name) => name !== '');
    const more = names.length > NAMED ? ' and more' : '';
    if (names.length > 0) causes.push(`${rule.nameBy} ${names.slice(0, NAMED).join(', ')}${more}`);
  }
  if (rule.explain) {
    const { samples } = await measured(rule.explain.measure, rule.window, database, now, signal);
    causes.push(samples > 0 ? rule.explain.present : rule.explain.absent);
  }
  return causes.length > 0 ? causes.join('; ') : undefined;
}

async function measured(
  measure: Measure,
  window: string,
  database: ColumnarDatabase,
  now: number,
  signal: AbortSignal,
): Promise<{ samples: number; value: number }> {
  const { sql, parameters } = queryOf(measure, window, now, await schemaOf(measure, database));
  const [row] = await database.query<{ samples: string; value: number }>(sql, parameters, { signal });
  return { samples: Number(row?.samples ?? 0), value: Number(row?.value ?? Number.NaN) };
}

/** Makes the table too, which on a first start may not be there yet. */
function schemaOf({ table }: Measure, database: ColumnarDatabase): Promise<TableSchema> {
  return database.schema(`otel_metrics_${table}`);
}

/** The query of a measure. @param schema of its table, by which attributes are found */
export function queryOf(
  measure: Measure,
  window: string,
  now: number,
  schema: Pick<TableSchema, 'attribute'>,
): Query {
  const { from, where, parameters } = samplesOf(measure, window, now, schema);
  return {
    sql: `SELECT count() AS samples, ${TAKE[measure.take]} AS value FROM ${from} WHERE ${where}`,
    parameters: { ...parameters, ...(measure.take === 'age' && { now: now / 1_000 }) },
  };
}

function samplesOf(
  { table, metric, where, resource, buckets }: Measure,
  window: string,
  now: number,
  schema: Pick<TableSchema, 'attribute'>,
) {
  const length = msOf(window);
  const from = buckets ? Math.floor(now / length - 1) * length - 1_000 : now - length;
  const parameters: Record<string, QueryParameter> = {
    metric,
    from: String(Math.floor(from / 1_000)),
    until: String(Math.ceil(now / 1_000)),
  };
  // Whole seconds: some schemas keep no finer ones.
  const terms = [
    'MetricName = {metric:String}',
    'TimeUnix > toDateTime({from:Int64})',
    'TimeUnix <= toDateTime({until:Int64})',
  ];
  for (const [column, wanted] of [
    ['Attributes', where],
    ['ResourceAttributes', resource],
  ] as const) {
    for (const [key, value] of Object.entries(wanted)) {
      const name = `p${terms.length}`;
      const isPrefix = value.endsWith('*');
      const held = schema.attribute(column, `{${name}k:String}`);
      terms.push(isPrefix ? `startsWith(${held}, {${name}v:String})` : `${held} = {${name}v:String}`);
      parameters[`${name}k`] = key;
      parameters[`${name}v`] = isPrefix ? value.slice(0, -1) : value;
    }
  }
  return { from: `otel_metrics_${table}`, where: terms.join(' AND '), parameters };
}

const round = (value: number): number => Math.round(value * 1_000) / 1_000;
