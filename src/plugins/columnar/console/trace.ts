import type { PageMark, PageMoment, PageSection, PageSpan } from '../../../core/contracts/console.ts';
import { counted, duration } from '../../../core/host/terminal.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Database } from '../database.ts';
import { factsOf } from './attributes.ts';
import { LOG_COLUMNS, type LogRow, logTable, SECONDS, statusOfLevel } from './logs.ts';
import { millis } from './range.ts';
import { ENDED } from './traces.ts';

const MOST_SPANS = 2_000;
const MOST_LOGS = 500;
/** Attributes over all spans of a trace: a page has a size. */
const MOST_FACTS = 16_000;
const MOST_MARKS = 20;
const LONGEST_MARK = 300;

interface SpanRow {
  readonly id: string;
  readonly parent: string;
  readonly name: string;
  readonly service: string;
  readonly kind: string;
  readonly code: string;
  readonly message: string;
  /** Nanoseconds. */
  readonly start: string;
  readonly length: string;
  readonly attributes: unknown;
  readonly resource: unknown;
  readonly scope: string;
  readonly events: readonly string[];
  readonly eventTimes: readonly string[];
  readonly eventAttributes: readonly unknown[];
}

/** A whole trace as it was known at the moment. @throws as `ColumnarDatabase.query` */
export async function oneTraceSections(
  database: Database,
  { inputs: { trace }, time, isNow, signal }: PageMoment,
): Promise<PageSection[]> {
  if (trace === undefined)
    return [
      { kind: 'text', text: 'Fill in the id of a trace, or choose one among the traces or log lines.' },
    ];
  const bounds = { signal, maxSeconds: SECONDS };
  const schema = await database.schema('otel_traces');
  // Now the clock of who sent it may be ahead of ours.
  const known = isNow ? 'TraceId = {trace:String}' : `TraceId = {trace:String} AND ${ENDED}`;
  const given = { trace, to: time };
  const [spans, logs] = await Promise.all([
    database.query<SpanRow>(
      `SELECT SpanId AS id, ParentSpanId AS parent, leftUTF8(SpanName, 300) AS name, ServiceName AS service, SpanKind AS kind,
       StatusCode AS code, leftUTF8(StatusMessage, 1000) AS message, toUnixTimestamp64Nano(toDateTime64(Timestamp, 9)) AS start,
       Duration AS length, SpanAttributes AS attributes, ResourceAttributes AS resource, ScopeName AS scope,
       arraySlice(\`Events.Name\`, 1, ${MOST_MARKS}) AS events,
       arrayMap(at -> toUnixTimestamp64Nano(toDateTime64(at, 9)), arraySlice(\`Events.Timestamp\`, 1, ${MOST_MARKS})) AS eventTimes,
       arraySlice(\`Events.Attributes\`, 1, ${MOST_MARKS}) AS eventAttributes
       FROM ${schema.table} WHERE ${known} ORDER BY Timestamp LIMIT ${MOST_SPANS + 1}`,
      given,
      bounds,
    ),
    logsOf(
      database,
      `TraceId = {trace:String}${isNow ? '' : ` AND ${millis('Timestamp')} <= {to:Int64}`}`,
      given,
      bounds,
    ),
  ]);
  if (spans.length === 0 && logs.length === 0)
    return [{ kind: 'text', text: 'No span and no log line of this trace was known at this moment.' }];
  const drawn = spansOf(spans.slice(0, MOST_SPANS), logs);
  return [
    ...(spans.length > 0 ? [summary(trace, drawn, spans.length > MOST_SPANS)] : []),
    { kind: 'waterfall', title: 'Spans', spans: drawn },
    ...(logs.length > 0
      ? [
          logTable(
            logs.slice(0, MOST_LOGS),
            `${counted(Math.min(logs.length, MOST_LOGS), 'log line')} of this trace${logs.length > MOST_LOGS ? ', the first ones' : ''}`,
            true,
          ),
        ]
      : []),
  ];
}

/** None where there is no table of logs: a foreign schema need not have one. */
async function logsOf(
  database: Database,
  where: string,
  given: { readonly trace: string; readonly to: number },
  bounds: { readonly signal: AbortSignal; readonly maxSeconds: number },
): Promise<readonly LogRow[]> {
  try {
    const { table } = await database.schema('otel_logs');
    return await database.query<LogRow>(
      `SELECT ${LOG_COLUMNS} FROM ${table} WHERE ${where} ORDER BY Timestamp LIMIT ${MOST_LOGS + 1}`,
      given,
      bounds,
    );
  } catch (error) {
    if (isCoded(error, 'HF_COLUMNAR_SCHEMA')) return [];
    throw error;
  }
}

function summary(trace: string, spans: readonly PageSpan[], isCut: boolean): PageSection {
  const began = Math.min(...spans.map(({ start }) => start));
  const ended = Math.max(...spans.map(({ start, duration: length }) => start + length));
  const failed = spans.filter(({ status }) => status === 'failing');
  const above = new Set(failed.map(({ parent }) => parent));
  // A span mostly fails because one of its parts did: where nothing below failed, it began.
  const first = failed.filter(({ id }) => !above.has(id));
  const services = new Set(spans.map(({ by }) => by));
  return {
    kind: 'facts',
    facts: [
      {
        label: 'Trace',
        value: trace,
        since: began,
        page: {
          name: 'logs',
          title: 'log lines around it',
          inputs: { until: new Date(ended + 60_000).toISOString(), range: '15 minutes' },
        },
      },
      {
        label: 'Took',
        value: ended - began < 1_000 ? `${Number((ended - began).toFixed(3))} ms` : duration(ended - began),
      },
      {
        label: 'Spans',
        value: `${isCut ? `the first ${spans.length}` : spans.length}, of ${counted(services.size, 'service')}`,
      },
      failed.length === 0
        ? { label: 'Failed', value: 'none' }
        : {
            label: 'Failed',
            value: `${failed.length}; it began in ${first.slice(0, 3).map(nameOf).join('; ')}${first.length > 3 ? '; …' : ''}`,
            status: 'failing',
          },
    ],
  };
}

const nameOf = ({ by, name, facts }: PageSpan): string =>
  `${by} ${name}${facts?.message ? ` (${String(facts.message).slice(0, 200)})` : ''}`;

function spansOf(rows: readonly SpanRow[], logs: readonly LogRow[]): PageSpan[] {
  const bySpan = Map.groupBy(logs, ({ span }) => span);
  const most = Math.min(40, Math.floor(MOST_FACTS / Math.max(1, rows.length)));
  return rows.map((row) => {
    const { id, parent, name, service, kind, code, message, start, length, attributes, resource, scope } =
      row;
    const isFailed = /^(?:STATUS_CODE_)?ERROR$/i.test(code);
    const marks = [...eventMarks(row), ...(bySpan.get(id) ?? []).slice(0, MOST_MARKS).map(logMark)];
    return {
      id,
      ...(parent !== '' && { parent }),
      name,
      by: service || '(no service)',
      start: msOf(start),
      duration: Number(length) / 1e6,
      ...(isFailed && { status: 'failing' as const }),
      ...(marks.length > 0 && { marks }),
      facts: {
        ...(message !== '' && { message }),
        ...(kind !== '' && { kind: kind.replace(/^SPAN_KIND_/, '').toLowerCase() }),
        ...factsOf({ '': attributes, resource }, most),
        ...(scope !== '' && { scope }),
        span: id,
      },
    };
  });
}

function eventMarks({ events, eventTimes, eventAttributes }: SpanRow): PageMark[] {
  return events.map((event, at) => {
    const facts = factsOf({ '': eventAttributes[at] }, 6);
    const what = Object.entries(facts).map(([key, value]) => `${key}=${value}`);
    return {
      time: msOf(eventTimes[at] ?? '0'),
      text: [event, ...what].join(' ').slice(0, LONGEST_MARK),
      ...(event === 'exception' && { status: 'failing' as const }),
    };
  });
}

function logMark({ time, level, severity, body }: LogRow): PageMark {
  const status = statusOfLevel(level);
  return {
    time: Number(time),
    text: `${severity ? `${severity}: ` : ''}${body}`.slice(0, LONGEST_MARK),
    ...(status && { status }),
  };
}

/** Milliseconds with fractions. @param nanos as digits */
function msOf(nanos: string): number {
  const whole = BigInt(nanos);
  return Number(whole / 1_000_000n) + Number(whole % 1_000_000n) / 1e6;
}
