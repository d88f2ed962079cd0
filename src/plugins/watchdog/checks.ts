import { z } from 'zod';

import type { ColumnarDatabase } from '../../core/contracts/columnar-database.ts';
import { OWN_SERVICE, SIGNAL_TABLES, type SignalTable } from '../../core/contracts/columnar-tables.ts';
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
  /** Of these a producer exists: no rows at all is a fault, and not a fresh installation. */
  producers: z.array(signal).default([]),
});

export type WatchdogOptions = z.output<typeof watchdogOptions>;

/** What the checks found; stale in seconds. */
export interface Findings {
  readonly stale: number;
  readonly drift: number;
  readonly failures: readonly Failure[];
}

/** For one query, seconds. */
const QUERY_SECONDS = 20;
const TOLD = 200;

const one = z.tuple([z.object({ one: z.union([z.literal(1), z.literal('1')]) })]);
const newest = z.tuple([z.object({ rows: z.coerce.number().int().min(0), age: z.coerce.number() })]);

/**
 * Looks at the stack (O10): does the database answer, do signals arrive, have tables the engines they must have, and
 * are the answers what was asked for?
 *
 * @param database undefined when there is none to ask, with the reason in `absent`
 */
export async function checkStack(
  database: ColumnarDatabase | undefined,
  absent: string,
  { staleAfter, signals, producers }: Pick<WatchdogOptions, 'staleAfter' | 'signals' | 'producers'>,
  signal: AbortSignal,
): Promise<Findings> {
  if (!database) {
    return { stale: 0, drift: 0, failures: [{ check: 'database', asked: 'for a database', found: absent }] };
  }
  const look = new Look(database, signal);
  const reached = await look.ask('database', `SELECT 1 of ${database.place}`, async (options) =>
    one.safeParse(await database.query('SELECT 1 AS one', {}, options)),
  );
  // Whatever else is asked of a database that does not answer would only say so again.
  if (!reached) return { stale: 0, drift: 0, failures: look.failures };

  let stale = 0;
  for (const table of new Set([...signals, ...producers])) {
    const age = await ageOf(look, table, staleAfter, producers.includes(table));
    stale = Math.max(stale, age ?? 0);
  }
  const drifted = await look.ask('engine', 'the engines of its tables', async (options) => ({
    success: true as const,
    data: await database.drift(options),
  }));
  if (drifted && drifted.length > 0) {
    const named = drifted
      .slice(0, 5)
      .map(({ table, engine, expected }) => `${table} ${engine}, not ${expected}`);
    look.fail('engine', 'the engines of its tables', `${drifted.length} drifted: ${named.join(', ')}`);
  }
  return { stale: Math.round(stale), drift: drifted?.length ?? 0, failures: look.failures };
}

/** The age of the newest row of somebody else, seconds; undefined where nobody produces yet. */
async function ageOf(
  look: Look,
  table: SignalTable,
  staleAfter: number,
  isDeclared: boolean,
): Promise<number | undefined> {
  const asked = `the age of the newest row of ${table}`;
  const recent = await look.ask('ingest', asked, (options) => look.newestRow(table, true, options));
  if (!recent) return undefined;
  let [row] = recent;
  if (row.rows === 0) {
    const ever = await look.ask('ingest', asked, (options) => look.newestRow(table, false, options));
    if (!ever) return undefined;
    [row] = ever;
  }
  if (row.rows === 0) {
    if (isDeclared) look.fail('ingest', asked, 'no row at all: no producer yet, though one is declared');
    return undefined;
  }
  const age = Math.max(0, row.age);
  if (age > staleAfter) look.fail('ingest', asked, `${Math.round(age)} s, more than ${staleAfter} s`);
  return age;
}

type Parsed<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly error: z.ZodError };

/** Asks questions, and keeps what was wrong with the answers. */
class Look {
  readonly failures: Failure[] = [];
  readonly #database: ColumnarDatabase;
  readonly #options: { readonly signal: AbortSignal; readonly maxSeconds: number };

  constructor(database: ColumnarDatabase, signal: AbortSignal) {
    this.#database = database;
    this.#options = { signal, maxSeconds: QUERY_SECONDS };
  }

  fail(check: Failure['check'], asked: string, found: string): void {
    this.failures.push({ check, asked, found: maskText(found.replace(/\s+/g, ' '), TOLD) });
  }

  /** @returns undefined when there was no answer, or not one that was asked for */
  async ask<T>(
    check: Failure['check'],
    asked: string,
    question: (options: { signal: AbortSignal; maxSeconds: number }) => Promise<Parsed<T>>,
  ): Promise<T | undefined> {
    try {
      const answer = await question(this.#options);
      if (answer.success) return answer.data;
      const [issue] = answer.error.issues;
      this.fail('result', asked, `a malformed result (${issue?.path.join('.')}: ${issue?.message})`);
    } catch (error) {
      if (this.#options.signal.aborted) throw error;
      const isResult = isCoded(error, 'HF_COLUMNAR_ANSWER');
      const found = isCoded(error) ? error.what.replace(/\.$/, '') : String(error);
      this.fail(isResult ? 'result' : check, asked, found);
    }
    return undefined;
  }

  /** @param isRecent looks at the last day only: a whole table is read where that has no row */
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
       FROM ${table} WHERE ServiceName != {own:String} AND ${time} < now() + INTERVAL 5 MINUTE ${since}`,
      { own: OWN_SERVICE },
      options,
    );
    return newest.safeParse(rows) as Parsed<z.output<typeof newest>>;
  }
}
