import type { PageMoment, PageSection, PageStatus } from '../../../core/contracts/console.ts';
import { pointsOf, type TimeRange, USUAL_RANGE } from '../../../core/host/history/time-ranges.ts';
import { duration } from '../../../core/host/terminal.ts';
import type { Database } from '../database.ts';
import { factsOf } from './attributes.ts';
import { Conditions } from './conditions.ts';
import { LEVELS } from './inputs.ts';
import { millis, rangeOf, stepSql } from './range.ts';

const MOST_ROWS = 200;
const MOST_FACTS = 40;
/** Characters of a log line that are shown. */
const LONGEST = 4_000;
export const SECONDS = 15;

/** Numbers of OpenTelemetry's severities by the beginnings of their names, for rows that have the name alone. */
const BY_NAME =
  "['tra', 'deb', 'inf', 'not', 'war', 'err', 'cri', 'ale', 'fat', 'eme'], [1, 5, 9, 10, 13, 17, 18, 19, 21, 22]";
const LEVEL = `if(SeverityNumber > 0, toInt32(SeverityNumber), transform(lower(substring(SeverityText, 1, 3)), ${BY_NAME}, 0))`;

/** A log line as the pages read it. */
export interface LogRow {
  readonly time: string;
  readonly level: number;
  readonly severity: string;
  readonly service: string;
  readonly body: string;
  readonly trace: string;
  readonly span: string;
  readonly attributes: unknown;
  readonly resource: unknown;
}

/** What is read of a log line. */
export const LOG_COLUMNS = `${millis('Timestamp')} AS time, ${LEVEL} AS level, SeverityText AS severity, ServiceName AS service,
  leftUTF8(Body, ${LONGEST}) AS body, TraceId AS trace, SpanId AS span, LogAttributes AS attributes, ResourceAttributes AS resource`;

export function statusOfLevel(level: number): PageStatus | undefined {
  return level >= 17 ? 'failing' : level >= 13 ? 'degraded' : undefined;
}

/** Log lines of a time, newest first, with how many there were. @throws as `ColumnarDatabase.query`; HF_COLUMNAR_FILTER */
export async function logSections(database: Database, moment: PageMoment): Promise<PageSection[]> {
  const { inputs, signal } = moment;
  const range = rangeOf(moment);
  const schema = await database.schema('otel_logs');
  const where = new Conditions()
    .within('Timestamp', range)
    .addIf(inputs.text, 'positionCaseInsensitiveUTF8(Body, {text:String}) > 0', 'text')
    .addIf(inputs.service, 'ServiceName = {service:String}', 'service')
    .attributes(inputs.attribute, schema, ['LogAttributes', 'ResourceAttributes']);
  const least = LEVELS[inputs.severity ?? 'any'] ?? 0;
  if (least > 0) where.add(`${LEVEL} >= {least:Int32}`, { least });
  const bounds = { signal, maxSeconds: SECONDS };
  const [rows, counts] = await Promise.all([
    database.query<LogRow>(
      `SELECT ${LOG_COLUMNS} FROM ${schema.table} WHERE ${where.sql} ORDER BY Timestamp DESC LIMIT ${MOST_ROWS + 1}`,
      where.parameters,
      bounds,
    ),
    database.query<{ at: string; service: string; errors: string; warnings: string; rows: string }>(
      `SELECT ${stepSql('Timestamp', range)} AS at, ServiceName AS service, countIf(${LEVEL} >= 17) AS errors,
       countIf(${LEVEL} >= 13 AND ${LEVEL} < 17) AS warnings, count() AS rows
       FROM ${schema.table} WHERE ${where.sql} GROUP BY at, service ORDER BY rows DESC LIMIT 20000`,
      where.parameters,
      bounds,
    ),
  ]);
  if (rows.length === 0) return [await noneFound(database, schema.table, 'log line', moment, range)];
  const shown = rows.slice(0, MOST_ROWS);
  return [
    countsChart(range, counts),
    logTable(shown, `${shown.length} newest log lines`),
    ...(rows.length > MOST_ROWS ? [olderLink(shown, inputs, 'logs')] : []),
    ...servicesOf(counts, inputs, 'logs'),
  ];
}

function countsChart(
  range: TimeRange,
  counts: readonly { at: string; errors: string; warnings: string; rows: string }[],
): PageSection {
  const by = {
    errors: new Map<number, number>(),
    warnings: new Map<number, number>(),
    others: new Map<number, number>(),
  };
  for (const { at, errors, warnings, rows } of counts) {
    const time = Number(at) * 1_000;
    const add = (map: Map<number, number>, count: number) => map.set(time, (map.get(time) ?? 0) + count);
    add(by.errors, Number(errors));
    add(by.warnings, Number(warnings));
    add(by.others, Number(rows) - Number(errors) - Number(warnings));
  }
  return {
    kind: 'chart',
    title: 'Log lines over time',
    form: 'bars',
    series: [
      { name: 'errors', status: 'failing', points: pointsOf(range, by.errors) },
      { name: 'warnings', status: 'degraded', points: pointsOf(range, by.warnings) },
      { name: 'others', status: 'unknown', points: pointsOf(range, by.others) },
    ],
  };
}

/** Who the rows come from, each a way to its own; nothing where a service was chosen already. */
export function servicesOf(
  counts: readonly { readonly service: string; readonly rows: string }[],
  inputs: PageMoment['inputs'],
  page: string,
): PageSection[] {
  if (inputs.service !== undefined) return [];
  const services = new Map<string, number>();
  for (const { service, rows } of counts) services.set(service, (services.get(service) ?? 0) + Number(rows));
  const bars = [...services]
    .sort(([, a], [, b]) => b - a)
    .slice(0, 12)
    .map(([name, value]) => ({
      name: name || '(no name)',
      value,
      ...(name !== '' && { page: { name: page, title: 'only this', inputs: { ...inputs, service: name } } }),
    }));
  return bars.length > 1 ? [{ kind: 'bars', title: 'Services', bars }] : [];
}

/** Log lines as a table. @param isOfTrace the trace is shown beside it, so that no row has to lead to it */
export function logTable(rows: readonly LogRow[], title: string, isOfTrace = false): PageSection {
  return {
    kind: 'table',
    title,
    columns: [
      { name: 'time', title: 'Time', format: 'instant' },
      { name: 'severity', title: 'Severity' },
      { name: 'service', title: 'Service' },
      { name: 'body', title: 'Text' },
    ],
    rows: rows.map(({ time, level, severity, service, body, trace, span, attributes, resource }) => {
      const status = statusOfLevel(level);
      return {
        ...(status && { status }),
        cells: { time: Number(time), severity: severity || null, service, body },
        facts: {
          ...(body.length > 400 && { text: body }),
          ...(trace !== '' && { trace }),
          ...(span !== '' && { span }),
          ...factsOf({ '': attributes, resource }, MOST_FACTS),
        },
        ...(trace !== '' && !isOfTrace && { page: { name: 'trace', title: 'trace', inputs: { trace } } }),
      };
    }),
  };
}

/** Leads to what is older than the last row. Rows of the last millisecond may come twice, and none is left out. */
export function olderLink(
  rows: readonly { readonly time: string }[],
  inputs: PageMoment['inputs'],
  page: string,
): PageSection {
  const [first, last] = [Number(rows[0]?.time), Number(rows.at(-1)?.time)];
  const until = new Date(first === last ? last - 1 : last).toISOString();
  return {
    kind: 'facts',
    facts: [
      {
        label: 'There are more',
        value: null,
        page: { name: page, title: 'older ones', inputs: { ...inputs, until } },
      },
    ],
  };
}

/** Says what the newest row is, so that an empty page tells a wrong filter from silence. */
export async function noneFound(
  database: Database,
  table: string,
  what: string,
  { inputs, signal }: PageMoment,
  { to }: TimeRange,
): Promise<PageSection> {
  const [row] = await database.query<{ rows: string; newest: string }>(
    `SELECT count() AS rows, ${millis('max(Timestamp)')} AS newest FROM ${table} WHERE Timestamp <= fromUnixTimestamp64Milli({to:Int64})`,
    { to },
    { signal, maxSeconds: SECONDS },
  );
  if (!row || Number(row.rows) === 0)
    return {
      kind: 'text',
      text: `There was no ${what} at all by then. \`holdfast stack verify\` says what arrives, and what is missing.`,
    };
  const newest = Number(row.newest);
  const until = new Date(newest).toISOString();
  const page = what === 'span' ? 'traces' : 'logs';
  return {
    kind: 'facts',
    title: `No ${what} of this time matches`,
    facts: [
      {
        label: `Newest ${what} of any kind by then`,
        value: `${duration(Math.max(0, to - newest))} before`,
        since: newest,
        page: { name: page, title: 'show that time', inputs: { range: inputs.range ?? USUAL_RANGE, until } },
      },
    ],
  };
}
