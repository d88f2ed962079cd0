import type { ColumnarDatabase, TableSchema } from '../../../core/contracts/columnar-database.ts';
import { ColumnarError } from '../errors.ts';
import { type Token, tokensOf } from '../reading/tokens.ts';

const METRIC_TABLES = [
  'otel_metrics_gauge',
  'otel_metrics_sum',
  'otel_metrics_histogram',
  'otel_metrics_exponential_histogram',
  'otel_metrics_summary',
];
/** Tables of metrics whose kind their name does not suggest; needed while the metric has no rows. */
const UNEXPECTED_TABLES: Readonly<Record<string, string>> = { 'file.mtime': 'otel_metrics_sum' };
const MOST_METRICS = 3;
const LOOK_SECONDS = 3;

const TARGET = "'http.target'";
/** Functions that extract a part of a target; all others show the whole target. */
const TAKES_A_PART =
  /^(extract\w*|regexpextract|replaceregexp\w+|match|like|ilike|startswith|empty|notempty|length)$/i;

/** The query by which MCP calls are counted. @param traces the table as it is */
export function mcpCalls(traces: TableSchema): string {
  const target = traces.attribute('SpanAttributes', TARGET);
  return `SELECT extract(${target}, '^/([^/]+)/mcp') AS server, count() AS calls FROM otel_traces WHERE Timestamp > now() - INTERVAL 1 HOUR AND SpanKind IN ('Server', 'SPAN_KIND_SERVER') AND server != '' GROUP BY server ORDER BY calls DESC`;
}

/**
 * Refuses a query whose answer would mislead, and explains why.
 *
 * @throws HF_COLUMNAR_RAW_TARGET, HF_COLUMNAR_WRONG_TABLE
 */
export async function explainMistakes(
  sql: string,
  database: ColumnarDatabase,
  signal: AbortSignal,
): Promise<void> {
  const tokens = tokensOf(sql);
  if (showsRawTarget(tokens)) {
    const query = mcpCalls(await database.schema('otel_traces'));
    throw new ColumnarError('HF_COLUMNAR_RAW_TARGET', { query });
  }
  const queried = METRIC_TABLES.filter((table) =>
    tokens.some(({ kind, value }) => kind === 'word' && value === table),
  );
  if (queried.length === 0) return;
  for (const metric of metricsOf(tokens)) {
    if (await isIn(queried, metric, database, signal)) continue;
    const expected = UNEXPECTED_TABLES[metric];
    const others = METRIC_TABLES.filter((table) => !queried.includes(table));
    const right =
      expected !== undefined && !queried.includes(expected)
        ? expected
        : await firstWith(others, metric, database, signal);
    if (right === undefined) continue;
    throw new ColumnarError('HF_COLUMNAR_WRONG_TABLE', {
      metric,
      queried: queried.join(', '),
      found: metric === 'file.mtime' ? 'it is a non-monotonic sum, in otel_metrics_sum' : `it is in ${right}`,
      query: `SELECT Attributes, TimeUnix, Value FROM ${right} WHERE MetricName = '${metric.replace(/[\\']/g, '')}' ORDER BY TimeUnix DESC LIMIT 20`,
    });
  }
}

/** Texts that a MetricName is compared with. */
function metricsOf(tokens: readonly Token[]): string[] {
  const names = tokens.flatMap(({ kind, value }, at) => {
    if (kind !== 'word' || value !== 'MetricName') return [];
    // `= 'x'`, `IN ('x', 'y')`
    return tokens
      .slice(at + 1, at + 12)
      .filter(({ kind }) => kind === 'text')
      .map(({ value }) => value.slice(1, -1));
  });
  return [...new Set(names)].filter((name) => /^[\w./:-]{1,200}$/.test(name)).slice(0, MOST_METRICS);
}

async function firstWith(
  tables: readonly string[],
  metric: string,
  database: ColumnarDatabase,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const table of tables) if (await isIn([table], metric, database, signal)) return table;
  return undefined;
}

async function isIn(
  tables: readonly string[],
  metric: string,
  database: ColumnarDatabase,
  signal: AbortSignal,
): Promise<boolean> {
  for (const table of tables) {
    const rows = await database.query(
      `SELECT 1 AS one FROM ${table} WHERE MetricName = {metric:String} LIMIT 1`,
      { metric },
      { signal, maxSeconds: LOOK_SECONDS },
    );
    if (rows.length > 0) return true;
  }
  return false;
}

/** Whether `http.target` is grouped, made distinct or collected as it is. */
function showsRawTarget(asTyped: readonly Token[]): boolean {
  const tokens = withTargets(asTyped);
  const words = tokens.map(({ kind, value }) => (kind === 'word' ? value.toUpperCase() : ''));
  const groups = words.some(
    (word, at) =>
      (word === 'GROUP' && words[at + 1] === 'BY') ||
      word === 'DISTINCT' ||
      /^(TOPK|UNIQ|GROUPARRAY|GROUPUNIQARRAY|ANY)/.test(word),
  );
  if (!groups) return false;
  let clause = '';
  const functions: string[] = [];
  const clauses: string[] = [];
  for (const [at, { kind, value }] of tokens.entries()) {
    const word = words[at] ?? '';
    if (/^(SELECT|FROM|WHERE|PREWHERE|GROUP|HAVING|ORDER|LIMIT)$/.test(word)) clause = word;
    if (kind === 'sign' && value === '(') {
      functions.push(words[at - 1] ?? '');
      clauses.push(clause);
    }
    if (kind === 'sign' && value === ')') {
      functions.pop();
      clause = clauses.pop() ?? clause;
    }
    if (value !== TARGET || !['SELECT', 'GROUP', 'LIMIT', 'ORDER'].includes(clause)) continue;
    if (!functions.some((name) => TAKES_A_PART.test(name))) return true;
  }
  return false;
}

/** Where attributes are of the type JSON, `SpanAttributes.http.target` names it: a path, or one word in quotes. */
function withTargets(tokens: readonly Token[]): Token[] {
  const target: Token = { kind: 'text', value: TARGET };
  const found: Token[] = [];
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens[at] as Token;
    const path = tokens.slice(at, at + 3).map(({ value }) => value);
    if (token.kind === 'word' && token.value === 'http.target') found.push(target);
    else if (path.join('') === 'http.target') {
      found.push(target);
      at += 2;
    } else found.push(token);
  }
  return found;
}
