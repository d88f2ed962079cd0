import {
  type ColumnarDatabase,
  type EngineDrift,
  PROBE_SERVICE,
  type QueryOptions,
  SIGNAL_TABLES,
  type SignalTable,
} from '../../../core/adapters/columnar-database.ts';
import { isCoded } from '../../../core/errors/index.ts';
import { TABLES } from '../schema/tables.ts';
import { MCP_CALLS } from './mistakes.ts';

/** Rows older than this are a producer that has gone silent. */
const STALE_SECONDS = 300;
const MOST_GROUPS = 50;

export interface Finding {
  readonly state: 'ok' | 'warn' | 'fail';
  readonly text: string;
  /** What to do. */
  readonly mend?: string;
}

export interface TableCount {
  readonly table: SignalTable;
  readonly lastHour: number;
  readonly total: number;
  /** Of the newest row of the last day, seconds; absent when there is none. */
  readonly age?: number;
  /** Rows of more than five minutes from now: somebody's clock is wrong. */
  readonly future: number;
}

export interface SignalReport {
  readonly signal: 'logs' | 'metrics' | 'traces';
  /** By which way it comes. */
  readonly path: string;
  readonly tables: readonly TableCount[];
}

export interface VerifyReport {
  readonly place: string;
  readonly signals: readonly SignalReport[];
  readonly spans: readonly { readonly service: string; readonly spans: number }[];
  readonly logs: readonly { readonly namespace: string; readonly logs: number }[];
  readonly mcp: readonly { readonly server: string; readonly calls: number }[];
  readonly drift: readonly EngineDrift[];
  readonly findings: readonly Finding[];
}

const PATHS = {
  logs: 'a log shipper writes them straight into the database, past the collector',
  metrics: "scrapers push them by OTLP; the collector's own come by its self-scrape",
  traces: 'only applications that send OTLP have any',
} as const;

/**
 * What arrived in the last hour, and what that says of the pipeline (O20, O27).
 *
 * @throws as `ColumnarDatabase.query`
 */
export async function verify(database: ColumnarDatabase, options: QueryOptions): Promise<VerifyReport> {
  const tables = await Promise.all(SIGNAL_TABLES.map((table) => count(table, database, options)));
  const of = (names: RegExp) => tables.filter(({ table }) => names.test(table));
  const signals: SignalReport[] = [
    { signal: 'logs', path: PATHS.logs, tables: of(/logs/) },
    { signal: 'metrics', path: PATHS.metrics, tables: of(/metrics/) },
    { signal: 'traces', path: PATHS.traces, tables: of(/traces/) },
  ];
  const ask = <R extends object>(sql: string) => database.query<R>(sql, { probe: PROBE_SERVICE }, options);
  const hour = 'Timestamp > now() - INTERVAL 1 HOUR';
  const spans = await ask<{ service: string; spans: string }>(
    `SELECT if(startsWith(ServiceName, {probe:String}), {probe:String}, ServiceName) AS service, count() AS spans FROM otel_traces WHERE ${hour} GROUP BY service ORDER BY spans DESC LIMIT ${MOST_GROUPS}`,
  );
  const logs = await ask<{ namespace: string; logs: string }>(
    `SELECT ResourceAttributes['k8s.namespace.name'] AS namespace, count() AS logs FROM otel_logs WHERE ${hour} GROUP BY namespace ORDER BY logs DESC LIMIT ${MOST_GROUPS}`,
  );
  const mcp = await ask<{ server: string; calls: string }>(`${MCP_CALLS} LIMIT ${MOST_GROUPS}`);
  const [probe] = await ask<{ age: string; rows: string }>(
    `SELECT count() AS rows, dateDiff('second', max(Timestamp), now()) AS age FROM otel_traces WHERE startsWith(ServiceName, {probe:String}) AND Timestamp > now() - INTERVAL 1 DAY`,
  );
  const drift = await database.drift(options);
  const probeAge = probe && Number(probe.rows) > 0 ? Number(probe.age) : undefined;
  const applications = spans.filter(({ service }) => !service.startsWith(PROBE_SERVICE)).length;
  return {
    place: database.place,
    signals,
    spans: spans.map(({ service, spans }) => ({ service, spans: Number(spans) })),
    logs: logs.map(({ namespace, logs }) => ({ namespace, logs: Number(logs) })),
    mcp: mcp.map(({ server, calls }) => ({ server, calls: Number(calls) })),
    drift,
    findings: [
      ...signals.flatMap((report) => findingsOf(report, applications, probeAge)),
      ...driftFinding(drift),
    ],
  };
}

async function count(
  table: SignalTable,
  database: ColumnarDatabase,
  options: QueryOptions,
): Promise<TableCount> {
  try {
    const { time } = TABLES[table];
    const [row] = await database.query<{
      hour: string;
      total: string;
      day: string;
      age: string;
      future: string;
    }>(
      `SELECT countIf(${time} > now() - INTERVAL 1 HOUR AND ${time} <= now() + INTERVAL 5 MINUTE) AS hour,
       countIf(${time} <= now() + INTERVAL 5 MINUTE) AS day, countIf(${time} > now() + INTERVAL 5 MINUTE) AS future,
       dateDiff('second', maxIf(${time}, ${time} <= now() + INTERVAL 5 MINUTE), now()) AS age,
       (SELECT count() FROM ${table}) AS total FROM ${table} WHERE ${time} > now() - INTERVAL 1 DAY`,
      {},
      options,
    );
    const { hour, total, day, age, future } = row ?? {};
    return {
      table,
      lastHour: Number(hour),
      total: Number(total),
      ...(Number(day) > 0 && { age: Math.max(0, Number(age)) }),
      future: Number(future),
    };
  } catch (error) {
    // A foreign schema need not have every table.
    if (!isCoded(error, 'HF_COLUMNAR_QUERY') || !/unknown table/i.test(error.what)) throw error;
    return { table, lastHour: 0, total: 0, future: 0 };
  }
}

function findingsOf(
  { signal, tables }: SignalReport,
  applications: number,
  probeAge: number | undefined,
): Finding[] {
  const total = tables.reduce((sum, { total }) => sum + total, 0);
  const future = tables.reduce((sum, { future }) => sum + future, 0);
  const age = Math.min(...tables.map(({ age = Number.POSITIVE_INFINITY }) => age));
  const skewed: Finding[] =
    future === 0
      ? []
      : [
          {
            state: 'warn',
            text: `${future} rows of ${signal} are dated in the future`,
            mend: 'Look at the clock of the host that sends them.',
          },
        ];
  if (signal === 'traces') return [tracesFinding(applications, probeAge), ...skewed];
  if (total === 0) {
    const text = `no ${signal} have ever arrived`;
    const mend =
      signal === 'logs'
        ? 'Point the log shipper at the database (tables otel_*), or send OTLP logs to the receiver.'
        : 'Point a collector or scraper at the OTLP receiver, with the ingest key as `authorization`.';
    return [{ state: 'warn', text, mend }, ...skewed];
  }
  if (age <= STALE_SECONDS)
    return [{ state: 'ok', text: `${signal}: the newest is ${age} s old` }, ...skewed];
  const text = Number.isFinite(age)
    ? `${signal}: the newest is ${age} s old, more than ${STALE_SECONDS} s`
    : `${signal}: none of the last day, though there are older ones`;
  const mend =
    signal === 'logs'
      ? 'Look at the log shipper: it writes past the collector.'
      : 'Look at the scraper collectors and their INGEST_TOKEN: `holdfast stack probe` shows whether the receiver takes data.';
  return [{ state: 'fail', text, mend }, ...skewed];
}

/** Silence of applications and a broken pipeline look the same until a probe went through (O27). */
function tracesFinding(applications: number, probeAge: number | undefined): Finding {
  if (applications > 0)
    return { state: 'ok', text: `traces: spans of ${applications} services in the last hour` };
  if (probeAge !== undefined) {
    const text = `no application sends traces, the pipeline is wired: a probe arrived ${probeAge} s ago`;
    return { state: 'ok', text };
  }
  return {
    state: 'warn',
    text: 'no spans in the last hour, and nothing shows that they could arrive',
    mend: 'Run `holdfast stack probe`: it sends a span and looks for it.',
  };
}

function driftFinding(drift: readonly EngineDrift[]): Finding[] {
  if (drift.length === 0) return [{ state: 'ok', text: 'every table has the engine that it should' }];
  const tables = drift.map(({ table, engine }) => `${table} (${engine})`).join(', ');
  const [{ expected = '' } = {}] = drift;
  return [
    {
      state: 'fail',
      text: `${drift.length} tables are not ${expected}: ${tables}`,
      mend: `Make them anew with ENGINE = ${expected} and copy the rows (INSERT … SELECT): as they are, they are not kept as promised.`,
    },
  ];
}
