import type {
  ColumnarDatabase,
  QueryParameter,
  TableSchema,
} from '../../../core/contracts/columnar-database.ts';
import type { ScheduledRuns } from '../../../core/contracts/jobs.ts';
import { msOf } from '../../../core/host/duration.ts';
import { AlertsError } from '../errors.ts';
import { fits } from '../options.ts';
import type { Measure, Rule } from './rule.ts';

/** The result of an evaluation; no value means no data, and never zero. */
export interface Evaluation {
  readonly value?: number;
  readonly finding?: string;
  /** When the newest sample was taken, epoch milliseconds. */
  readonly newestAt?: number;
  /** Hosts and instances of the samples; of the wrong ones where the value is the highest or the lowest. */
  readonly places?: readonly string[];
}

/** The sources that rules evaluate. */
export interface Sources {
  /** Undefined if there is none. */
  readonly database: ColumnarDatabase | undefined;
  /** Undefined where no plugin records scheduled runs. */
  readonly runs?: ScheduledRuns | undefined;
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
/** Causes and places that an alert names. */
const NAMED = 10;
/** Characters of a finding. */
const LONGEST_FINDING = 1_000;

/**
 * Evaluates a rule once. Failed runs count beside the samples of its metric; where the samples cannot be queried or the runs
 * cannot be read, the other source alone can show that something is wrong, but never that all is well.
 *
 * @param now epoch milliseconds, the end of the window
 * @throws HF_COLUMNAR_*, HF_ALERTS_UNSEEN a source could not be looked at
 */
export async function evaluate(
  rule: Rule,
  { database, runs }: Sources,
  now: number,
  signal: AbortSignal,
): Promise<Evaluation> {
  const counted = rule.runs === undefined ? undefined : runs;
  const failed = (counted?.failed() ?? []).filter(({ run }) => fits(rule.runs ?? '', run));
  if (failed.length > 0) {
    const rows = failed.slice(0, NAMED).map(({ namespace, run, text }) => `${namespace}/${run}: ${text}`);
    return { value: 1, finding: rows.join('; ').slice(0, LONGEST_FINDING) };
  }
  const fault = counted?.fault();
  if (fault !== undefined) throw new AlertsError('HF_ALERTS_UNSEEN', { reason: fault });
  // No failed run among those that are there is zero; where none is there, nothing was looked at.
  const none = counted?.known().some((run) => fits(rule.runs ?? '', run)) ? 0 : undefined;
  if (!database) {
    if (counted) return none === undefined ? {} : { value: none };
    throw new AlertsError('HF_ALERTS_UNSEEN', { reason: 'there is no columnar database' });
  }
  const { samples, value, newestAt, places } = await measured(rule, database, now, signal);
  const found = samples > 0 && Number.isFinite(value) ? value : undefined;
  const wrong =
    found === undefined
      ? rule.onNoData === 'fire'
      : rule.above === undefined
        ? found < (rule.below ?? 0)
        : found > rule.above;
  const finding = wrong ? await causeOf(rule, database, now, signal) : undefined;
  const result = found ?? none;
  return {
    ...(result !== undefined && { value: round(result) }),
    ...(finding && { finding }),
    ...(newestAt !== undefined && { newestAt }),
    ...(places.length > 0 && { places }),
  };
}

/** The cause of a wrong value: which attribute values have it, or what what another metric shows. */
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
  if (rule.explain) causes.push(await explanationOf(rule.explain, rule.window, database, now, signal));
  return causes.length > 0 ? causes.join('; ') : undefined;
}

/** What another metric shows about the cause. Its absence means something only if its sender is known to send. */
async function explanationOf(
  { measure, sender, lookBack, present, absent, unknown }: NonNullable<Rule['explain']>,
  window: string,
  database: ColumnarDatabase,
  now: number,
  signal: AbortSignal,
): Promise<string> {
  const samplesIn = async (one: Measure, time: string) => {
    const { sql, parameters } = countOf(one, time, now, await schemaOf(one, database));
    const [row] = await database.query<{ samples: string }>(sql, parameters, { signal });
    return Number(row?.samples ?? 0);
  };
  if ((await samplesIn(measure, window)) > 0) return present;
  const before = { ...measure, resource: { ...measure.resource, ...sender } };
  return (await samplesIn(before, lookBack)) > 0 ? absent : unknown;
}

interface Measured {
  readonly samples: number;
  readonly value: number;
  readonly newestAt?: number;
  readonly places: readonly string[];
}

async function measured(
  rule: Rule,
  database: ColumnarDatabase,
  now: number,
  signal: AbortSignal,
): Promise<Measured> {
  const { sql, parameters } = queryOf(rule, now, await schemaOf(rule.measure, database));
  const [row] = await database.query<Row>(sql, parameters, { signal });
  const samples = Number(row?.samples ?? 0);
  return {
    samples,
    value: Number(row?.value ?? Number.NaN),
    ...(samples > 0 && row?.newest !== undefined && { newestAt: Number(row.newest) * 1_000 }),
    places: samples > 0 ? (row?.places ?? []).flatMap(placeText) : expectedPlace(rule.measure),
  };
}

/** The senders whose samples were searched and not found. */
function expectedPlace({ resource }: Measure): string[] {
  return placeText(`${resource['host.name'] ?? ''}\n${resource['service.instance.id'] ?? ''}`);
}

interface Row {
  readonly samples: string;
  readonly value: number;
  /** Epoch seconds. */
  readonly newest?: string | number;
  /** Host and instance, with a line break between. */
  readonly places?: readonly string[];
}

/** e.g. `nas (instance nas:/var/lib/holdfast)`; nothing where a series names neither. */
function placeText(place: string): string[] {
  const [host = '', instance = ''] = place.split('\n');
  if (instance === '') return host === '' ? [] : [host];
  return [`${host === '' ? 'unknown host' : host} (instance ${instance})`];
}

/** This also creates the table, which may not exist yet at a first start. */
function schemaOf({ table }: Measure, database: ColumnarDatabase): Promise<TableSchema> {
  return database.schema(`otel_metrics_${table}`);
}

/** The query of a rule's measure. @param schema of its table, by which attributes are found */
export function queryOf(
  { measure, window, above, below }: Pick<Rule, 'measure' | 'window' | 'above' | 'below'>,
  now: number,
  schema: Pick<TableSchema, 'attribute'>,
): Query {
  const { from, where, parameters } = samplesOf(measure, window, now, schema);
  const bound = above === undefined ? 'Value < {bound:Float64}' : 'Value > {bound:Float64}';
  const resource = (key: string) => schema.attribute('ResourceAttributes', `'${key}'`);
  const place = `concat(${resource('host.name')}, '\\n', ${resource('service.instance.id')})`;
  // A highest or lowest value is wrong where a sample is beyond the bound; every place contributes to the other values.
  const isOfOne = measure.take === 'max' || measure.take === 'min';
  const places = isOfOne
    ? `groupUniqArrayIf(${NAMED})(${place}, ${bound})`
    : `groupUniqArray(${NAMED})(${place})`;
  return {
    sql: `SELECT count() AS samples, ${TAKE[measure.take]} AS value, toUnixTimestamp(toDateTime(max(TimeUnix))) AS newest, arraySort(${places}) AS places FROM ${from} WHERE ${where}`,
    parameters: {
      ...parameters,
      ...(isOfOne && { bound: above ?? below ?? 0 }),
      ...(measure.take === 'age' && { now: now / 1_000 }),
    },
  };
}

function countOf(
  measure: Measure,
  window: string,
  now: number,
  schema: Pick<TableSchema, 'attribute'>,
): Query {
  const { from, where, parameters } = samplesOf(measure, window, now, schema);
  return { sql: `SELECT count() AS samples FROM ${from} WHERE ${where}`, parameters };
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
