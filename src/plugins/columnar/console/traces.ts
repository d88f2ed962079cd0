import type { PageMoment, PageSection } from '../../../core/contracts/console.ts';
import { pointsOf, type TimeRange } from '../../../core/host/history/time-ranges.ts';
import type { Database } from '../database.ts';
import { Conditions, nanosOf } from './conditions.ts';
import { ONLY_FAILED } from './inputs.ts';
import { noneFound, olderLink, SECONDS, servicesOf } from './logs.ts';
import { millis, rangeOf, stepSql } from './range.ts';

const MOST_TRACES = 100;
/** Spans of a trace may have begun so long before those that were found, milliseconds. */
const BEFORE_MS = 3_600_000;

const FAILED = "StatusCode IN ('Error', 'STATUS_CODE_ERROR')";
/** Only what had ended by the moment: a span is sent when it ends. */
export const ENDED = `${millis('Timestamp')} + intDiv(Duration, 1000000) <= {to:Int64}`;

interface Found {
  readonly trace: string;
  readonly time: string;
}

interface Summary {
  readonly trace: string;
  readonly root: string;
  readonly service: string;
  readonly began: string;
  readonly ended: string;
  readonly spans: string;
  readonly failed: string;
  readonly services: readonly string[];
}

/** Traces with a span that was looked for, newest first. @throws as `ColumnarDatabase.query`; HF_COLUMNAR_FILTER */
export async function traceSections(database: Database, moment: PageMoment): Promise<PageSection[]> {
  const { inputs, signal } = moment;
  const range = rangeOf(moment);
  const least = nanosOf(inputs.least);
  const schema = await database.schema('otel_traces');
  const where = new Conditions()
    .within('Timestamp', range)
    .add(ENDED)
    .addIf(inputs.service, 'ServiceName = {service:String}', 'service')
    .addIf(inputs.span, 'positionCaseInsensitiveUTF8(SpanName, {span:String}) > 0', 'span')
    .attributes(inputs.attribute, schema, ['SpanAttributes', 'ResourceAttributes']);
  if (least !== undefined) where.add('Duration >= {least:UInt64}', { least: String(least) });
  if (inputs.outcome === ONLY_FAILED) where.add(FAILED);
  const bounds = { signal, maxSeconds: SECONDS };
  const [found, counts] = await Promise.all([
    database.query<Found>(
      `SELECT TraceId AS trace, ${millis('max(Timestamp)')} AS time FROM ${schema.table} WHERE ${where.sql}
       GROUP BY trace ORDER BY max(Timestamp) DESC LIMIT ${MOST_TRACES + 1}`,
      where.parameters,
      bounds,
    ),
    database.query<{ at: string; service: string; failed: string; rows: string }>(
      `SELECT ${stepSql('Timestamp', range)} AS at, ServiceName AS service, countIf(${FAILED}) AS failed, count() AS rows
       FROM ${schema.table} WHERE ${where.sql} GROUP BY at, service ORDER BY rows DESC LIMIT 20000`,
      where.parameters,
      bounds,
    ),
  ]);
  if (found.length === 0) return [await noneFound(database, schema.table, 'span', moment, range)];
  const shown = found.slice(0, MOST_TRACES);
  const summaries = await summariesOf(database, shown, range, bounds);
  return [
    spansChart(range, counts),
    traceTable(shown, summaries),
    ...(found.length > MOST_TRACES ? [olderLink(shown, inputs, 'traces')] : []),
    ...servicesOf(counts, inputs, 'traces'),
  ];
}

function spansChart(
  range: TimeRange,
  counts: readonly { at: string; failed: string; rows: string }[],
): PageSection {
  const failures = new Map<number, number>();
  const others = new Map<number, number>();
  for (const { at, failed, rows } of counts) {
    const time = Number(at) * 1_000;
    failures.set(time, (failures.get(time) ?? 0) + Number(failed));
    others.set(time, (others.get(time) ?? 0) + Number(rows) - Number(failed));
  }
  return {
    kind: 'chart',
    title: 'Spans over time',
    form: 'bars',
    series: [
      { name: 'failed', status: 'failing', points: pointsOf(range, failures) },
      { name: 'others', status: 'unknown', points: pointsOf(range, others) },
    ],
  };
}

/** What is known of whole traces, of which one span was found. */
async function summariesOf(
  database: Database,
  found: readonly Found[],
  { to }: TimeRange,
  bounds: { readonly signal: AbortSignal; readonly maxSeconds: number },
): Promise<ReadonlyMap<string, Summary>> {
  const oldest = Math.min(...found.map(({ time }) => Number(time))) - BEFORE_MS;
  const rows = await database.query<Summary>(
    `SELECT TraceId AS trace, argMin(SpanName, (ParentSpanId != '', Timestamp)) AS root,
     argMin(ServiceName, (ParentSpanId != '', Timestamp)) AS service, ${millis('min(Timestamp)')} AS began,
     max(${millis('Timestamp')} + intDiv(Duration, 1000000)) AS ended, count() AS spans, countIf(${FAILED}) AS failed,
     groupUniqArray(12)(ServiceName) AS services
     FROM otel_traces WHERE TraceId IN {traces:Array(String)} AND Timestamp > fromUnixTimestamp64Milli({oldest:Int64})
     AND ${ENDED} GROUP BY trace`,
    { traces: found.map(({ trace }) => trace), oldest, to },
    bounds,
  );
  return new Map(rows.map((row) => [row.trace, row]));
}

function traceTable(found: readonly Found[], summaries: ReadonlyMap<string, Summary>): PageSection {
  return {
    kind: 'table',
    title: `${found.length} newest traces`,
    columns: [
      { name: 'began', title: 'Began', format: 'instant' },
      { name: 'service', title: 'Service' },
      { name: 'root', title: 'First span' },
      { name: 'length', title: 'Took', format: 'duration' },
      { name: 'spans', title: 'Spans', format: 'number' },
      { name: 'failed', title: 'Failed', format: 'number' },
      { name: 'services', title: 'Services' },
    ],
    rows: found.flatMap(({ trace }) => {
      const summary = summaries.get(trace);
      if (!summary) return [];
      const { root, service, began, ended, spans, failed, services } = summary;
      return {
        ...(Number(failed) > 0 && { status: 'failing' as const }),
        cells: {
          began: Number(began),
          service: service || null,
          root,
          length: Number(ended) - Number(began),
          spans: Number(spans),
          failed: Number(failed),
          services: [...services].sort().join(', '),
        },
        page: { name: 'trace', title: 'open', inputs: { trace } },
      };
    }),
  };
}
