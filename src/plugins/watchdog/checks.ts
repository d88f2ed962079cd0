import { z } from 'zod';

import type { ColumnarDatabase } from '../../core/contracts/columnar-database.ts';
import {
  HEARTBEAT_SERVICE,
  OWN_SERVICE,
  SIGNAL_TABLES,
  type SignalTable,
} from '../../core/contracts/columnar-tables.ts';
import { maskText } from '../../core/host/logging/mask-text.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import type { Failure } from '../../machines/watchdog/run.ts';

const signal = z.enum(SIGNAL_TABLES);

export const watchdogOptions = z.strictObject({
  /** The push monitor that the heartbeats go to. */
  monitor: z
    .string()
    .regex(/^[a-z0-9][a-z0-9_.-]{0,63}$/)
    .default('clickstack-watchdog'),
  /** When it runs, as a cron pattern in UTC. */
  cron: z.string().default('*/5 * * * *'),
  /** Seconds after which the newest row of a watched signal is too old. */
  staleAfter: z.int().min(1).max(86_400).default(300),
  /** The tables that must keep getting rows, once they have any. */
  signals: z.array(signal).min(1).default(['otel_logs', 'otel_metrics_gauge']),
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
}

type Expected = Pick<WatchdogOptions, 'staleAfter' | 'signals' | 'producers'> & {
  /** Tables that have had rows: one that has none any more is no fresh installation. */
  readonly produced?: readonly string[];
};

/** What is said of a table whose signal is lost. */
interface LossTexts {
  readonly late: string;
  readonly missing: string | undefined;
}

/** How a signal that nobody declared is given up, for it is watched from its first row on. */
const TRIAL = ' (was it a trial? then take it out of `signals` of watchdog())';

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
 * @param database undefined when there is none; `absent` says why
 */
export async function checkStack(
  database: ColumnarDatabase | undefined,
  absent: string,
  { staleAfter, signals, producers, produced: before = [] }: Expected,
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

  let stale = 0;
  const produced: SignalTable[] = [];
  for (const table of new Set([...signals, ...producers])) {
    const isDeclared = producers.includes(table);
    const setting = isDeclared ? '' : TRIAL;
    const missing = before.includes(table)
      ? `no row at all, though it has had some: they were deleted, or none came for the whole retention${setting}`
      : isDeclared
        ? 'no row at all: no producer yet, though one is declared'
        : undefined;
    const late = `more than ${staleAfter} s${setting}`;
    const age = await ageOf(checks, table, { staleAfter, late, missing });
    if (age !== undefined && !before.includes(table)) produced.push(table);
    stale = Math.max(stale, age ?? 0);
  }
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
  return {
    stale: Math.round(stale),
    drift: drifted?.length ?? 0,
    failures: checks.failures,
    ...(produced.length > 0 && { produced }),
  };
}

/**
 * Age of the newest row that Holdfast did not write itself, seconds; undefined when nothing produces yet.
 *
 * @param losses what is wrong when its newest row is too old, and when it has none; undefined when that is no fault
 */
async function ageOf(
  checks: Checks,
  table: SignalTable,
  { staleAfter, late, missing }: Pick<WatchdogOptions, 'staleAfter'> & LossTexts,
): Promise<number | undefined> {
  const query = `the age of the newest row of ${table}`;
  const recent = await checks.ask('ingest', query, (options) => checks.newestRow(table, true, options));
  if (!recent) return undefined;
  let [row] = recent;
  if (row.rows === 0) {
    const ever = await checks.ask('ingest', query, (options) => checks.newestRow(table, false, options));
    if (!ever) return undefined;
    [row] = ever;
  }
  if (row.rows === 0) {
    if (missing !== undefined) checks.fail('ingest', query, missing);
    return undefined;
  }
  const age = Math.max(0, row.age);
  if (age > staleAfter) checks.fail('ingest', query, `${Math.round(age)} s, ${late}`);
  return age;
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
