import type { QueryTable } from '../../../core/contracts/columnar-database.ts';
import { SIGNAL_TABLES } from '../../../core/contracts/columnar-tables.ts';
import type { PageMoment, PageSection } from '../../../core/contracts/console.ts';
import { counted } from '../../../core/host/terminal.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { tableOf } from '../answer.ts';
import type { Database } from '../database.ts';
import { askReading } from '../questions/questions.ts';
import { TABLES } from '../tables.ts';
import { ROW_LIMITS } from './inputs.ts';
import { SECONDS } from './logs.ts';

const MOST_COLUMNS = 30;
const LONGEST_CELL = 2_000;
/** Series of a chart; the rest is in the table. */
const MOST_SERIES = 12;
const MOST_BARS = 50;

const EXAMPLES: readonly (readonly [what: string, sql: string])[] = [
  [
    'Log lines by service',
    'SELECT ServiceName, count() AS lines\nFROM otel_logs\nWHERE Timestamp > now() - INTERVAL 1 HOUR\nGROUP BY ServiceName ORDER BY lines DESC',
  ],
  [
    'Errors a minute',
    "SELECT toStartOfMinute(Timestamp) AS minute, countIf(StatusCode = 'Error') AS failed, count() AS spans\nFROM otel_traces\nWHERE Timestamp > now() - INTERVAL 6 HOUR\nGROUP BY minute ORDER BY minute",
  ],
  [
    'Slowest spans by name',
    'SELECT SpanName, quantile(0.95)(Duration) / 1e6 AS ms, count() AS spans\nFROM otel_traces\nWHERE Timestamp > now() - INTERVAL 1 DAY\nGROUP BY SpanName ORDER BY ms DESC LIMIT 20',
  ],
  [
    'A gauge over time, by host',
    "SELECT toStartOfFiveMinutes(TimeUnix) AS time, ResourceAttributes['host.name'] AS host, avg(Value) AS value\nFROM otel_metrics_gauge\nWHERE MetricName = 'system.cpu.utilization' AND TimeUnix > now() - INTERVAL 1 DAY\nGROUP BY time, host ORDER BY time",
  ],
];

/** The answer to a statement of a person, as a table and where it can be drawn as a chart. @throws as `askReading` */
export async function sqlSections(
  database: Database,
  { inputs: { sql, limit = ROW_LIMITS[0] }, time, isNow, signal }: PageMoment,
): Promise<PageSection[]> {
  if (sql === undefined) return helpSections(database);
  const most = Number(limit);
  const options = { signal, maxSeconds: SECONDS, isoTimes: true, ...(!isNow && { until: time }) };
  const answer = await tableOf(await askReading(database, sql, most, options), most);
  const { rows, truncated, elapsedMs } = answer;
  const columns = columnsOf(answer);
  const chart = chartOf(columns, rows);
  return [
    {
      kind: 'facts',
      facts: [
        {
          label: 'Answer',
          value: `${counted(rows.length, 'row')}${truncated ? ', and there are more' : ''}, in ${Math.round(elapsedMs)} ms`,
        },
        ...(isNow
          ? []
          : [
              {
                label: 'As of the moment',
                value: 'signals after it are left out, and it is what now() and today() say',
                since: time,
              },
            ]),
      ],
    },
    ...(chart ? [chart] : []),
    {
      kind: 'table',
      columns: columns.slice(0, MOST_COLUMNS).map(({ name, title, form }, at) => ({
        name,
        title,
        ...(form === 'number' && { format: 'number' as const }),
        ...(form === 'time' && { format: hasMillis(rows, at) ? ('instant' as const) : ('time' as const) }),
      })),
      rows: rows.map((row) => ({
        cells: Object.fromEntries(
          columns.slice(0, MOST_COLUMNS).map(({ name, form }, at) => [name, cellOf(row[at], form)]),
        ),
      })),
    },
    ...(columns.length > MOST_COLUMNS
      ? [{ kind: 'text' as const, text: `${columns.length - MOST_COLUMNS} more columns are not shown.` }]
      : []),
  ];
}

type Form = 'time' | 'number' | 'text';

interface Column {
  /** One of its own, also where two columns have the same title. */
  readonly name: string;
  readonly title: string;
  readonly form: Form;
}

function columnsOf({ columns }: QueryTable): Column[] {
  return columns.map(({ name, type }, at) => ({
    // A column that is named as a secret is shown as one.
    name: columns.findIndex((one) => one.name === name) === at ? name : `${name} ${at}`,
    title: name,
    form: formOf(type),
  }));
}

function formOf(type: string): Form {
  const inner = type
    .replace(/^(?:LowCardinality|Nullable|SimpleAggregateFunction)\((?:\w+, )?/, '')
    .replace(/^Nullable\(/, '');
  if (/^DateTime/.test(inner)) return 'time';
  return /^(?:U?Int|Float|BFloat|Decimal)/.test(inner) ? 'number' : 'text';
}

function cellOf(value: unknown, form: Form): string | number | boolean | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'boolean') return value;
  if (form === 'time') {
    const ms = Date.parse(String(value));
    return Number.isFinite(ms) ? ms : String(value);
  }
  // An integer that a number cannot hold stays as it was written.
  if (form === 'number') {
    const number = Number(value);
    const isExact = Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number));
    return isExact ? number : String(value);
  }
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > LONGEST_CELL ? `${text.slice(0, LONGEST_CELL)}…` : text;
}

const hasMillis = (rows: QueryTable['rows'], column: number): boolean =>
  rows.some((row) => Date.parse(String(row[column])) % 1_000 !== 0);

/** Where the first column is a time, lines; where it is a text with one number, bars. */
function chartOf(columns: readonly Column[], rows: QueryTable['rows']): PageSection | undefined {
  const [first, second, third] = columns.map(({ form }) => form);
  const numbers = columns.flatMap(({ form, title }, at) => (form === 'number' ? [{ title, at }] : []));
  if (rows.length < 2 || numbers.length === 0) return undefined;
  if (first === 'time' && second === 'text' && third === 'number')
    return linesOf(rows.map((row) => [row[0], String(row[1]), row[2]] as const));
  if (first === 'time')
    return linesOf(numbers.flatMap(({ title, at }) => rows.map((row) => [row[0], title, row[at]] as const)));
  if (first !== 'text' || numbers.length > 3) return undefined;
  const [{ title = '', at = 1 } = {}] = numbers;
  return {
    kind: 'bars',
    title,
    bars: rows
      .slice(0, MOST_BARS)
      .map((row) => ({ name: String(row[0]) || '(empty)', value: Number(row[at]) })),
  };
}

function linesOf(
  values: readonly (readonly [time: unknown, series: string, value: unknown])[],
): PageSection | undefined {
  const lines = new Map<string, [number, number][]>();
  for (const [time, series, value] of values) {
    const point: [number, number] = [Date.parse(String(time)), value === null ? Number.NaN : Number(value)];
    const line = lines.get(series);
    if (line) line.push(point);
    else lines.set(series, [point]);
  }
  const series = [...lines].slice(0, MOST_SERIES).map(([name, points]) => ({
    name: name || '(empty)',
    points: points.filter((point) => point.every(Number.isFinite)).sort(([a], [b]) => a - b),
  }));
  return series.some(({ points }) => points.length > 1)
    ? {
        kind: 'chart',
        title: lines.size > MOST_SERIES ? `The first ${MOST_SERIES} of ${lines.size} series` : 'Over time',
        series,
      }
    : undefined;
}

/** What can be asked: the tables as they are, and statements to begin with. */
async function helpSections(database: Database): Promise<PageSection[]> {
  const tables = await Promise.all(
    SIGNAL_TABLES.map(async (table) => {
      try {
        const { columns } = await database.schema(table);
        return { cells: { table, time: TABLES[table].time, columns: [...columns.keys()].join(', ') } };
      } catch (error) {
        if (isCoded(error, 'HF_COLUMNAR_SCHEMA'))
          return { cells: { table, time: null, columns: 'there is no such table' } };
        throw error;
      }
    }),
  );
  return [
    {
      kind: 'table',
      title: 'To begin with',
      columns: [
        { name: 'what', title: 'What' },
        { name: 'sql', title: 'Statement' },
      ],
      rows: EXAMPLES.map(([what, text]) => ({
        cells: { what, sql: text },
        page: { name: 'sql', title: 'ask', inputs: { sql: text } },
      })),
    },
    {
      kind: 'table',
      title: 'Tables',
      columns: [
        { name: 'table', title: 'Table' },
        { name: 'time', title: 'Time' },
        { name: 'columns', title: 'Columns' },
      ],
      rows: tables,
    },
    {
      kind: 'text',
      text: `One statement of ClickHouse that reads: SELECT, WITH, SHOW, DESCRIBE, EXPLAIN. It has ${SECONDS} s; functions that reach elsewhere are refused, as they are to \`holdfast stack query\` and to agents.`,
    },
  ];
}
