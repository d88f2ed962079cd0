import { z } from 'zod';

import type { ColumnarDatabase } from '../../core/contracts/columnar-database.ts';
import {
  HEARTBEAT_SERVICE,
  OWN_SERVICE,
  SIGNAL_TABLES,
  type SignalTable,
} from '../../core/contracts/columnar-tables.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import type { PluginStatus } from '../../core/host/plugin/definition.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { type Failure, SCHEDULE } from '../../machines/watchdog/run.ts';

const signal = z.enum(SIGNAL_TABLES);

export const watchdogOptions = z.strictObject({
  /** The push monitor that the heartbeats go to. */
  monitor: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/)
    .default('clickstack-watchdog'),
  /** When it runs, as a cron pattern in UTC. */
  cron: z.string().default(SCHEDULE),
  /** Seconds after which the newest row of a watched signal is too old. */
  staleAfter: z.int().min(1).max(86_400).default(300),
  /**
   * The tables that are watched, and must keep getting rows once they have any. Without it the logs and the gauges are
   * watched, and each is required once it has come for a day.
   */
  signals: z.array(signal).optional(),
  /** Tables that have a producer: no row at all is a failure there, and not a fresh installation. */
  producers: z.array(signal).default([]),
});

export type WatchdogOptions = z.output<typeof watchdogOptions>;

/** Result of the checks. */
export interface Findings {
  /** Age of the oldest watched signal, seconds. */
  readonly stale: number;
  /** Tables with another engine than they must have. */
  readonly drift: number;
  readonly failures: readonly Failure[];
  /** Watched tables that have rows, and had none when they were checked before. */
  readonly produced?: readonly SignalTable[];
  /** Age of the newest row of each watched table that has any, seconds. */
  readonly ages?: Readonly<Record<string, number>>;
  /** What was seen of signals that are not required yet, as sentences. */
  readonly unknown?: readonly string[];
}

type Expected = Pick<WatchdogOptions, 'staleAfter' | 'signals' | 'producers'> & {
  /** Tables that have had rows: one that has none any more is no fresh installation. */
  readonly produced?: readonly string[];
  /** Tables that got rows for a whole day: they are required though nobody declared them. */
  readonly steady?: readonly string[];
};

/** Watched where no setting names the signals. */
const WATCHED: readonly SignalTable[] = ['otel_logs', 'otel_metrics_gauge'];

const NOT_REQUIRED = 'not required until `signals` of watchdog() names it, or it has come for a day';

/** Deadline of one query, seconds. */
const QUERY_SECONDS = 20;
/** Characters of a finding. */
const LONGEST_FINDING = 200;

const one = z.tuple([z.object({ one: z.union([z.literal(1), z.literal('1')]) })]);
const newest = z.tuple([z.object({ rows: z.coerce.number().int().min(0), age: z.coerce.number() })]);

/**
 * Checks the stack (O10): the database answers, signals arrive, tables have the engines they must have, and results have
 * the expected shape.
 *
 * A signal that is not required yet is no failure, whatever is seen of it.
 *
 * @param database undefined when there is none; `absent` says why
 */
export async function checkStack(
  database: ColumnarDatabase | undefined,
  absent: string,
  expected: Expected,
  signal: AbortSignal,
): Promise<Findings> {
  if (!database) {
    return { stale: 0, drift: 0, failures: [{ check: 'database', query: 'for a database', found: absent }] };
  }
  const checks = new Checks(database, signal);
  const reached = await checks.ask('database', `SELECT 1 of ${database.place}`, async (options) =>
    one.safeParse(await database.query('SELECT 1 AS one', {}, options)),
  );
  // Further queries to a database that does not answer would only repeat the failure.
  if (!reached) return { stale: 0, drift: 0, failures: checks.failures };

  const ingest = await checkIngest(checks, expected);
  const drifted = await checks.ask('engine', 'the engines of its tables', async (options) => ({
    success: true as const,
    data: await database.drift(options),
  }));
  if (drifted && drifted.length > 0) {
    const named = drifted
      .slice(0, 5)
      .map(({ table, engine, expected }) => `${table} ${engine}, not ${expected}`);
    checks.fail('engine', 'the engines of its tables', `${drifted.length} drifted: ${named.join(', ')}`);
  }
  return { ...ingest, drift: drifted?.length ?? 0, failures: checks.failures };
}

/** Whether the watched tables get rows. */
async function checkIngest(
  checks: Checks,
  expected: Expected,
): Promise<Pick<Findings, 'stale' | 'produced' | 'ages' | 'unknown'>> {
  const { staleAfter, signals = WATCHED, producers, produced: before = [] } = expected;
  let stale = 0;
  const produced: SignalTable[] = [];
  const unknown: string[] = [];
  const ages: Record<string, number> = {};
  for (const table of new Set([...signals, ...producers])) {
    const query = `the age of the newest row of ${table}`;
    const age = await ageOf(checks, table, query);
    if (age === 'unanswered') continue;
    if (age !== undefined) {
      ages[table] = age;
      if (!before.includes(table)) produced.push(table);
    }
    const lost = lossOf(age, before.includes(table), producers.includes(table), staleAfter);
    const because = requirement(table, expected);
    if (lost !== undefined && because === undefined) unknown.push(`${table}: ${lost}; ${NOT_REQUIRED}`);
    else stale = Math.max(stale, age ?? 0);
    if (lost !== undefined && because !== undefined) checks.fail('ingest', query, `${lost} (${because})`);
  }
  return {
    stale: Math.round(stale),
    ...(produced.length > 0 && { produced }),
    ...(Object.keys(ages).length > 0 && { ages }),
    ...(unknown.length > 0 && { unknown }),
  };
}

/** What is wrong with a signal that must come; undefined when nothing is. @param age of its newest row, seconds */
function lossOf(
  age: number | undefined,
  hadRows: boolean,
  isProduced: boolean,
  staleAfter: number,
): string | undefined {
  if (age !== undefined)
    return age > staleAfter ? `${Math.round(age)} s, more than ${staleAfter} s` : undefined;
  if (hadRows)
    return 'no row at all, though it has had some: they were deleted, or none came for the whole retention';
  return isProduced ? 'no row at all: no producer yet, though one is declared' : undefined;
}

/** Why a signal is required, with the setting; undefined while it is not. */
function requirement(
  table: SignalTable,
  { signals, producers, steady = [] }: Pick<Expected, 'signals' | 'producers' | 'steady'>,
): string | undefined {
  if (producers.includes(table)) return 'required by `producers` of watchdog()';
  if (signals?.includes(table)) return 'required by `signals` of watchdog()';
  if (!steady.includes(table)) return undefined;
  return 'required since it came for a day, unless `signals` of watchdog() names only others';
}

/** Age of the newest row that Holdfast did not write itself, seconds; undefined when there is none. */
async function ageOf(
  checks: Checks,
  table: SignalTable,
  query: string,
): Promise<number | undefined | 'unanswered'> {
  const recent = await checks.ask('ingest', query, (options) => checks.newestRow(table, true, options));
  if (!recent) return 'unanswered';
  let [row] = recent;
  if (row.rows === 0) {
    const ever = await checks.ask('ingest', query, (options) => checks.newestRow(table, false, options));
    if (!ever) return 'unanswered';
    [row] = ever;
  }
  return row.rows === 0 ? undefined : Math.max(0, row.age);
}

type Parsed<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly error: z.ZodError };

/** Queries the database, and collects the failures. */
class Checks {
  readonly failures: Failure[] = [];
  readonly #database: ColumnarDatabase;
  readonly #options: { readonly signal: AbortSignal; readonly maxSeconds: number };

  constructor(database: ColumnarDatabase, signal: AbortSignal) {
    this.#database = database;
    this.#options = { signal, maxSeconds: QUERY_SECONDS };
  }

  fail(check: Failure['check'], query: string, found: string): void {
    this.failures.push({ check, query, found: maskText(found.replace(/\s+/g, ' '), LONGEST_FINDING) });
  }

  /** @returns undefined when there was no answer, or one of another shape */
  async ask<T>(
    check: Failure['check'],
    query: string,
    run: (options: { signal: AbortSignal; maxSeconds: number }) => Promise<Parsed<T>>,
  ): Promise<T | undefined> {
    try {
      const answer = await run(this.#options);
      if (answer.success) return answer.data;
      const [issue] = answer.error.issues;
      this.fail('result', query, `a malformed result (${issue?.path.join('.')}: ${issue?.message})`);
    } catch (error) {
      if (this.#options.signal.aborted) throw error;
      const isResult = isCoded(error, 'HF_COLUMNAR_ANSWER');
      const found = isCoded(error) ? error.what.replace(/\.$/, '') : String(error);
      this.fail(isResult ? 'result' : check, query, found);
    }
    return undefined;
  }

  /** @param isRecent reads the last day only; without it the whole table is read */
  async newestRow(
    table: SignalTable,
    isRecent: boolean,
    options: { signal: AbortSignal; maxSeconds: number },
  ): Promise<Parsed<z.output<typeof newest>>> {
    await this.#database.schema(table);
    const time = table === 'otel_logs' || table === 'otel_traces' ? 'Timestamp' : 'TimeUnix';
    const since = isRecent ? `AND ${time} > now() - INTERVAL 1 DAY` : '';
    const rows = await this.#database.query(
      `SELECT count() AS rows, dateDiff('millisecond', toDateTime64(max(${time}), 3), now64(3)) / 1000 AS age
       FROM ${table} WHERE ServiceName != {own:String} AND ServiceName != {heartbeat:String} AND ${time} < now() + INTERVAL 5 MINUTE ${since}`,
      { own: OWN_SERVICE, heartbeat: HEARTBEAT_SERVICE },
      options,
    );
    return newest.safeParse(rows) as Parsed<z.output<typeof newest>>;
  }
}

/** Why there is no database. */
export function absentReason(plugins: readonly PluginStatus[]): string {
  const failed = plugins.filter(({ state }) => state === 'failed');
  if (failed.length > 0)
    return failed.map(({ name, reason }) => `plugin ${name} failed: ${reason}`).join('; ');
  return 'none: no instance with an embedded one runs here, and HOLDFAST_CLICKHOUSE_URL names no server';
}
