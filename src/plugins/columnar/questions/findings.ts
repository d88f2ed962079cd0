import type { EngineDrift } from '../../../core/contracts/columnar-database.ts';
import type { SignalTable } from '../../../core/contracts/columnar-tables.ts';
import { counted } from '../../../core/host/terminal.ts';

/** Rows older than this are a producer that has gone silent. */
const STALE_SECONDS = 300;

/** The rows of one table. */
export interface TableCount {
  readonly table: SignalTable;
  /** There is no such table. */
  readonly missing?: true;
  readonly lastHour: number;
  readonly total: number;
  /** How many of them Holdfast wrote itself: they show nothing about producers. */
  readonly own: number;
  /** Age of the newest row of the last day that is not our own, seconds; absent when there is none. */
  readonly age?: number;
  /** Rows with a time more than five minutes ahead: the clock of a producer is wrong. */
  readonly future: number;
}

/** The rows of one signal. */
export interface SignalReport {
  readonly signal: 'logs' | 'metrics' | 'traces';
  /** The way of its rows into the database. */
  readonly path: string;
  readonly tables: readonly TableCount[];
}

/** A conclusion about the pipeline. */
export interface Finding {
  /** `unknown` is what nothing was seen of. */
  readonly state: 'ok' | 'warn' | 'fail' | 'unknown';
  readonly text: string;
  /** What to do. */
  readonly remedy?: string;
}

/** Missing tables, whose rows cannot be stored. */
export function missingFinding(tables: readonly TableCount[]): Finding[] {
  const missing = tables.filter(({ missing }) => missing).map(({ table }) => table);
  if (missing.length === 0) return [];
  return [
    {
      state: 'fail',
      text: `there is no table ${missing.join(', ')}`,
      remedy: 'Start Holdfast with a user that may create tables, or create them as docs/stack.md shows.',
    },
  ];
}

/** What the rows of a signal show about its producers. */
export function signalFindings(
  { signal, tables }: SignalReport,
  applications: number,
  probeAge: number | undefined,
): Finding[] {
  const total = tables.reduce((sum, { total, own }) => sum + total - own, 0);
  const own = tables.reduce((sum, { own }) => sum + own, 0);
  const future = tables.reduce((sum, { future }) => sum + future, 0);
  const age = Math.min(...tables.map(({ age = Number.POSITIVE_INFINITY }) => age));
  const skewed: Finding[] =
    future === 0
      ? []
      : [
          {
            state: 'warn',
            text: `${counted(future, 'row')} of ${signal} ${future === 1 ? 'is' : 'are'} dated in the future`,
            remedy: 'Check the clock of the host that sends them.',
          },
        ];
  if (signal === 'traces') return [tracesFinding(applications, probeAge), ...skewed];
  if (total === 0) {
    const text = `no ${signal} have ever arrived${own > 0 ? ', but those that Holdfast writes itself' : ''}`;
    const remedy =
      signal === 'logs'
        ? 'Point the log shipper at the database (tables otel_*), or send OTLP logs to the receiver.'
        : 'Point a collector or scraper at the OTLP receiver, with the ingest key as `authorization`.';
    return [{ state: 'warn', text, remedy }, ...skewed];
  }
  if (age <= STALE_SECONDS)
    return [{ state: 'ok', text: `${signal}: the newest is ${age} s old` }, ...skewed];
  const text = Number.isFinite(age)
    ? `${signal}: the newest is ${age} s old, more than ${STALE_SECONDS} s`
    : `${signal}: none of the last day, though there are older ones`;
  const remedy =
    signal === 'logs'
      ? 'Check the log shipper: it writes past the collector.'
      : 'Check the scraper collectors and their INGEST_TOKEN: `holdfast stack probe` shows whether the receiver takes data.';
  return [{ state: 'fail', text, remedy }, ...skewed];
}

/** Silence of applications and a broken pipeline look the same until a probe went through (O27). */
function tracesFinding(applications: number, probeAge: number | undefined): Finding {
  if (applications > 0) {
    const services = counted(applications, 'service');
    return { state: 'ok', text: `traces: spans of ${services} in the last hour` };
  }
  if (probeAge !== undefined) {
    const text = `no application sends traces, the pipeline is wired: a probe arrived ${probeAge} s ago`;
    return { state: 'ok', text };
  }
  return {
    state: 'warn',
    text: 'no spans in the last hour, and nothing shows that they could arrive',
    remedy: 'Run `holdfast stack probe`: it sends a span and looks for it.',
  };
}

export function driftFinding(drift: readonly EngineDrift[]): Finding[] {
  if (drift.length === 0) return [{ state: 'ok', text: 'every table has the engine that it should' }];
  const tables = drift.map(({ table, engine }) => `${table} (${engine})`).join(', ');
  const [{ expected = '' } = {}] = drift;
  return [
    {
      state: 'fail',
      text: `${counted(drift.length, 'table is', 'tables are')} not ${expected}: ${tables}`,
      remedy: `Make them anew with ENGINE = ${expected} and copy the rows (INSERT … SELECT): as they are, they are not kept as promised.`,
    },
  ];
}
