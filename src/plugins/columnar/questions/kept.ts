/**
 * How long the signal tables keep their rows, and the state of their replicas: facts of the database for `doctor
 * stack`.
 */

import type { ColumnarDatabase, QueryOptions } from '../../../core/contracts/columnar-database.ts';
import { SIGNAL_TABLES } from '../../../core/contracts/columnar-tables.ts';
import type { CheckResult } from '../../../core/host/plugin/diagnosis.ts';
import { counted } from '../../../core/host/terminal.ts';

/** Logs of the watchdog are kept for at least so long (O6). */
const LEAST_DAYS = 14;
const DELAY_SECONDS = 300;
/** The fewest days of each unit. */
const DAYS = {
  Second: 1 / 86_400,
  Minute: 1 / 1_440,
  Hour: 1 / 24,
  Day: 1,
  Week: 7,
  Month: 28,
  Quarter: 90,
  Year: 365,
} as const;
const INTERVAL = /^(.+?) \+ toInterval(Second|Minute|Hour|Day|Week|Month|Quarter|Year)\((\d+)\)(?: DELETE)?$/;
const TIME_COLUMN = /^(?:toDate(?:Time(?:64)?)?\()?`?\w*Time\w*`?(?:, \d\))?\)?$/;
const NO_DELETE = / (?:TO (?:DISK|VOLUME) |RECOMPRESS |GROUP BY )/;

/** For how many days a table keeps rows; `ever`, or `unknown` with the clause that is not understood. */
export type Kept =
  | { readonly days: number }
  | { readonly days: 'ever' }
  | { readonly days: 'unknown'; readonly clause: string };

/** @param engine `engine_full` of the table */
export function keptBy(engine: string): Kept {
  const [, ttl] = / TTL (.+?)(?: SETTINGS .*| COMMENT .*)?$/s.exec(engine) ?? [];
  if (ttl === undefined) return { days: 'ever' };
  const clauses = clausesOf(ttl).filter((clause) => !NO_DELETE.test(clause));
  let days = Number.POSITIVE_INFINITY;
  for (const clause of clauses) {
    const [, time = '', unit, count] = INTERVAL.exec(clause) ?? [];
    if (unit === undefined || !TIME_COLUMN.test(time)) return { days: 'unknown', clause };
    days = Math.min(days, Number(count) * DAYS[unit as keyof typeof DAYS]);
  }
  return Number.isFinite(days) ? { days } : { days: 'ever' };
}

/** Parts between commas outside of brackets. */
function clausesOf(ttl: string): string[] {
  const clauses = [''];
  let depth = 0;
  for (const sign of ttl) {
    depth += sign === '(' ? 1 : sign === ')' ? -1 : 0;
    if (sign === ',' && depth === 0) clauses.push('');
    else clauses[clauses.length - 1] += sign;
  }
  return clauses.map((clause) => clause.trim());
}

const LIST = SIGNAL_TABLES.map((table) => `'${table}'`).join(', ');

/** Whether each signal table keeps its rows for 14 days or more, whoever made it. @throws as `ColumnarDatabase.query` */
export async function retentionCheck(
  database: ColumnarDatabase,
  name: string,
  options: QueryOptions,
): Promise<CheckResult> {
  const lookedAt = 'the TTL of the signal tables';
  const rows = await database.query<{ name: string; engine: string }>(
    `SELECT name, engine_full AS engine FROM system.tables WHERE database = {database:String} AND name IN (${LIST}) ORDER BY name`,
    { database: name },
    options,
  );
  if (rows.length === 0) {
    const remedy =
      'Start Holdfast with a user that may create tables, or create them as docs/stack.md shows.';
    return { state: 'unknown', lookedAt, found: 'not checked: there is no signal table', remedy };
  }
  const kept = rows.map(({ name, engine }) => ({ name, kept: keptBy(engine) }));
  const short = kept.flatMap(({ name, kept: { days } }) =>
    typeof days === 'number' && days < LEAST_DAYS ? [`${name} keeps its rows for ${round(days)} days`] : [],
  );
  if (short.length > 0) {
    const remedy = `Keep them for ${LEAST_DAYS} days or more: ALTER TABLE … MODIFY TTL, or \`retentionDays\` for tables of Holdfast.`;
    return { state: 'fail', lookedAt, found: `${short.join('; ')}: less than ${LEAST_DAYS}`, remedy };
  }
  const odd = kept.flatMap(({ name, kept }) => (kept.days === 'unknown' ? [`${name} (${kept.clause})`] : []));
  if (odd.length > 0) {
    const remedy =
      'Compare the TTL with 14 days yourself: `holdfast stack query "SHOW CREATE TABLE …"` shows it.';
    return { state: 'unknown', lookedAt, found: `this TTL is not understood: ${odd.join('; ')}`, remedy };
  }
  const numbers = kept.flatMap(({ kept: { days } }) => (typeof days === 'number' ? [days] : []));
  const ever = kept.length - numbers.length;
  const found = [
    ...(numbers.length > 0
      ? [`${counted(numbers.length, 'table')} for ${round(Math.min(...numbers))} days or more`]
      : []),
    ...(ever > 0 ? [`${counted(ever, 'table')} for ever, because there is no TTL`] : []),
  ];
  return { state: 'ok', lookedAt, found: `rows are kept in ${found.join(', in ')}` };
}

const round = (days: number): number => Math.round(days * 100) / 100;

/** A row of `system.replicas`. */
export interface Replica {
  readonly table: string;
  readonly readonly: number;
  readonly expired: number;
  /** Seconds. */
  readonly delay: string | number;
  readonly total: number;
  readonly active: number;
}

/**
 * Whether every replicated table has all its replicas, which write and keep up (O10). @throws as `ColumnarDatabase.query`
 *
 * @param expected how many replicas are configured
 */
export async function replicasCheck(
  database: ColumnarDatabase,
  name: string,
  expected: number,
  options: QueryOptions,
): Promise<CheckResult> {
  const rows = await database.query<Replica & Record<string, unknown>>(
    `SELECT table, is_readonly AS readonly, is_session_expired AS expired, absolute_delay AS delay,
     total_replicas AS total, active_replicas AS active FROM system.replicas WHERE database = {database:String} ORDER BY table`,
    { database: name },
    options,
  );
  return judgeReplicas(rows, expected);
}

/** Pure; see `replicasCheck`. */
export function judgeReplicas(rows: readonly Replica[], expected: number): CheckResult {
  const lookedAt = 'the replicas of the tables (system.replicas)';
  if (rows.length === 0) {
    if (expected === 1)
      return { state: 'ok', lookedAt, found: 'no table is replicated, and one replica is configured' };
    const remedy = 'Create the tables as replicated ones, or set `replicas` of the columnar plugin to 1.';
    return {
      state: 'fail',
      lookedAt,
      found: `no table is replicated, and ${expected} replicas are configured`,
      remedy,
    };
  }
  const faults = rows.flatMap(({ table, readonly, expired, delay, total, active }) => [
    ...(Number(readonly) === 0 ? [] : [`${table} takes no writes (read-only)`]),
    ...(Number(expired) === 0 ? [] : [`${table} has lost its session with the keeper`]),
    ...(Number(active) >= Number(total) ? [] : [`${active} of ${total} replicas of ${table} are active`]),
    ...(Number(total) >= expected ? [] : [`${table} has ${total} of ${expected} replicas`]),
    ...(Number(delay) <= DELAY_SECONDS ? [] : [`${table} is ${delay} s behind`]),
  ]);
  if (faults.length === 0) {
    const least = Math.min(...rows.map(({ active }) => Number(active)));
    return {
      state: 'ok',
      lookedAt,
      found: `${counted(rows.length, 'table')}, ${least} replicas active of each`,
    };
  }
  const remedy =
    'Look at the keeper and at the other replica: SELECT * FROM system.replicas on the server says more.';
  return { state: 'fail', lookedAt, found: faults.join('; '), remedy };
}
