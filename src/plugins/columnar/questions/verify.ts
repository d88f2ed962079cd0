import type {
  ColumnarDatabase,
  EngineDrift,
  QueryOptions,
  TableSchema,
} from '../../../core/contracts/columnar-database.ts';
import {
  OWN_SERVICE,
  PROBE_SERVICE,
  SIGNAL_TABLES,
  type SignalTable,
} from '../../../core/contracts/columnar-tables.ts';
import { isCoded } from '../../../core/kernel/errors/holdfast-error.ts';
import { TABLES } from '../tables.ts';
import {
  driftFinding,
  type Finding,
  missingFinding,
  type SignalReport,
  signalFindings,
  type TableCount,
} from './findings.ts';
import { mcpCalls } from './mistakes.ts';

const MOST_GROUPS = 50;
const HOUR = 'Timestamp > now() - INTERVAL 1 HOUR';

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
 * What arrived in the last hour, and what that shows about the pipeline (O20, O27).
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
  const [logs, traces] = [await found('otel_logs', database), await found('otel_traces', database)];
  const spansByService = traces
    ? await ask<{ service: string; spans: string }>(
        `SELECT if(startsWith(ServiceName, {probe:String}), {probe:String}, ServiceName) AS service, count() AS spans
         FROM otel_traces WHERE ${HOUR} GROUP BY service ORDER BY spans DESC, service LIMIT ${MOST_GROUPS}`,
      )
    : [];
  const logsByNamespace = logs
    ? await ask<{ namespace: string; logs: string }>(
        `SELECT ${logs.attribute('ResourceAttributes', "'k8s.namespace.name'")} AS namespace, count() AS logs
         FROM otel_logs WHERE ${HOUR} GROUP BY namespace ORDER BY logs DESC, namespace LIMIT ${MOST_GROUPS}`,
      )
    : [];
  const calls = traces
    ? await ask<{ server: string; calls: string }>(`${mcpCalls(traces)} LIMIT ${MOST_GROUPS}`)
    : [];
  const [probe] = traces
    ? await ask<{ age: string; rows: string }>(
        `SELECT count() AS rows, dateDiff('second', max(Timestamp), now()) AS age FROM otel_traces
         WHERE startsWith(ServiceName, {probe:String}) AND Timestamp > now() - INTERVAL 1 DAY`,
      )
    : [];
  const drift = await database.drift(options);
  const probeAge = probe && Number(probe.rows) > 0 ? Number(probe.age) : undefined;
  const applications = spansByService.filter(({ service }) => !service.startsWith(PROBE_SERVICE)).length;
  return {
    place: database.place,
    signals,
    spans: spansByService.map(({ service, spans }) => ({ service, spans: Number(spans) })),
    logs: logsByNamespace.map(({ namespace, logs }) => ({ namespace, logs: Number(logs) })),
    mcp: calls.map(({ server, calls }) => ({ server, calls: Number(calls) })),
    drift,
    findings: [
      ...missingFinding(tables),
      ...signals.flatMap((report) => signalFindings(report, applications, probeAge)),
      ...driftFinding(drift),
    ],
  };
}

/** Undefined where there is no such table: a foreign schema need not have every one. */
async function found(table: SignalTable, database: ColumnarDatabase): Promise<TableSchema | undefined> {
  try {
    return await database.schema(table);
  } catch (error) {
    if (isCoded(error, 'HF_COLUMNAR_SCHEMA')) return undefined;
    throw error;
  }
}

async function count(
  table: SignalTable,
  database: ColumnarDatabase,
  options: QueryOptions,
): Promise<TableCount> {
  if (!(await found(table, database)))
    return { table, missing: true, lastHour: 0, total: 0, own: 0, future: 0 };
  const { time } = TABLES[table];
  const [row] = await database.query<{
    hour: string;
    total: string;
    own: string;
    day: string;
    age: string;
    future: string;
  }>(
    `SELECT countIf(${time} > now() - INTERVAL 1 HOUR AND ${time} <= now() + INTERVAL 5 MINUTE) AS hour,
     countIf(ServiceName != {own:String} AND ${time} <= now() + INTERVAL 5 MINUTE) AS day,
     countIf(${time} > now() + INTERVAL 5 MINUTE) AS future,
     dateDiff('second', maxIf(${time}, ServiceName != {own:String} AND ${time} <= now() + INTERVAL 5 MINUTE), now()) AS age,
     (SELECT count() FROM ${table}) AS total, (SELECT count() FROM ${table} WHERE ServiceName = {own:String}) AS own
     FROM ${table} WHERE ${time} > now() - INTERVAL 1 DAY`,
    { own: OWN_SERVICE },
    options,
  );
  const { hour, total, own, day, age, future } = row ?? {};
  return {
    table,
    lastHour: Number(hour),
    total: Number(total),
    own: Number(own),
    ...(Number(day) > 0 && { age: Math.max(0, Number(age)) }),
    future: Number(future),
  };
}
