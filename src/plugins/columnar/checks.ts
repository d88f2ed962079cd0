import { connect } from 'node:net';
import type { EngineDrift } from '../../core/contracts/columnar-database.ts';
import type { CheckContext, CheckDefinition, CheckResult } from '../../core/host/plugin/diagnosis.ts';
import { sizeText } from '../../core/host/size.ts';
import { counted } from '../../core/host/terminal.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { isObject } from '../../core/kernel/json.ts';
import type { ColumnarOptions } from './options.ts';
import { askDatabase } from './questions/questions.ts';
import type { SeenTable } from './schema.ts';

/** The query is so simple that a database that does not answer it in this time counts as not answering. */
const SECONDS = 5;
const CONNECT_MS = 3_000;
const NATIVE_PORT = 9000;

interface Inspection {
  readonly drift: readonly EngineDrift[];
  readonly tables: readonly SeenTable[];
}

/** What `holdfast doctor stack` checks of the database (O26). */
export function databaseChecks(options: ColumnarOptions): CheckDefinition[] {
  const configured = options.url === undefined ? 'the embedded columnar database' : new URL(options.url).host;
  return [
    {
      name: 'stack.columnar',
      run: (context) => databaseCheck(options, placeOf(context) ?? configured, context),
    },
    {
      name: 'stack.columnar_engines',
      run: (context) => enginesCheck(options, placeOf(context) ?? configured, context),
    },
    ...(['retention', 'replicas'] as const).map((name) => ({
      name: `stack.columnar_${name}`,
      run: (context: CheckContext) => askedCheck(name, options, context),
    })),
    ...(options.url === undefined
      ? []
      : [{ name: 'stack.columnar_native', run: (context: CheckContext) => nativeCheck(options, context) }]),
  ];
}

/** The place that the running instance reports: its environment may name another database than ours. */
function placeOf({ running }: CheckContext): string | undefined {
  const facts = running?.facts.columnar;
  return isObject(facts) && typeof facts.place === 'string' ? facts.place : undefined;
}

async function databaseCheck(
  options: ColumnarOptions,
  lookedAt: string,
  context: CheckContext,
): Promise<CheckResult> {
  const inspection = await inspect(options, lookedAt, context);
  if ('state' in inspection) return inspection;
  const missing = inspection.tables.filter(({ made }) => made === 'missing').map(({ table }) => table);
  if (missing.length > 0) {
    const remedy =
      'Start Holdfast with a user that may create tables, or create them as docs/stack.md shows.';
    return { state: 'fail', lookedAt, found: `it has no ${missing.join(', ')}`, remedy };
  }
  const damaged = inspection.tables.filter(({ damaged }) => damaged > 0);
  if (damaged.length > 0) {
    const parts = damaged.map(({ table, damaged }) => `${damaged} of ${table}`).join(', ');
    const found = `damaged parts were set aside, and their rows are missing: ${parts}`;
    const remedy =
      'Check the disk. The parts are in the folders `detached` (their names begin with broken): restore them from a backup, or delete them.';
    return { state: 'warn', lookedAt, found, remedy };
  }
  const rows = inspection.tables.reduce((sum, { rows }) => sum + rows, 0);
  const bytes = inspection.tables.reduce((sum, { bytes }) => sum + bytes, 0);
  const foreign = inspection.tables.filter(({ made }) => made === 'elsewhere').length;
  const by =
    foreign === 0 ? 'made by Holdfast' : `${foreign} of them made by somebody else and used as they are`;
  return {
    state: 'ok',
    lookedAt,
    found: `it answers: seven tables, ${by}; ${counted(rows, 'row')}, ${sizeText(bytes)}`,
  };
}

async function enginesCheck(
  options: ColumnarOptions,
  lookedAt: string,
  context: CheckContext,
): Promise<CheckResult> {
  const inspection = await inspect(options, lookedAt, context);
  if ('state' in inspection) return inspection;
  const { replicas, url } = options;
  if (inspection.tables.every(({ engine }) => engine === undefined)) {
    const remedy = 'See stack.columnar: the tables are not there yet.';
    return { state: 'unknown', lookedAt, found: 'not looked at: there is no table', remedy };
  }
  const replicated = inspection.tables.filter(
    ({ engine }) => engine && /^(Replicated|Shared)/.test(engine),
  ).length;
  if (inspection.drift.length === 0 && (replicas > 1 || replicated === 0)) {
    const found =
      url === undefined || replicas === 1
        ? 'every engine is of the MergeTree family'
        : 'every table is replicated';
    return { state: 'ok', lookedAt, found };
  }
  if (inspection.drift.length === 0) {
    const found = `${counted(replicated, 'table is', 'tables are')} replicated, and the configuration says one replica`;
    return {
      state: 'warn',
      lookedAt,
      found,
      remedy: 'Set `replicas` of the columnar plugin to their number, so that drift is seen.',
    };
  }
  const tables = inspection.drift.map(({ table, engine }) => `${table} (${engine})`).join(', ');
  const expected = inspection.drift[0]?.expected ?? '';
  const remedy = `Make them anew with ENGINE = ${expected} and copy the rows over.`;
  return { state: 'fail', lookedAt, found: `not ${expected}: ${tables}`, remedy };
}

/** The database makes these checks itself; when it does not answer, the result is `unknown`. */
async function askedCheck(
  name: 'retention' | 'replicas',
  options: ColumnarOptions,
  { dataDir, signal }: CheckContext,
): Promise<CheckResult> {
  try {
    return await askDatabase<CheckResult>(name, { seconds: SECONDS }, { dataDir, signal }, options);
  } catch (error) {
    if (!isCoded(error)) throw error;
    const lookedAt = name === 'retention' ? 'the TTL of the signal tables' : 'the replicas of the tables';
    return { state: 'unknown', lookedAt, found: `not checked: ${error.what}`, remedy: error.remedy };
  }
}

/** The native protocol is for the database's own client; a connection is enough. */
async function nativeCheck(
  { url = '', native }: ColumnarOptions,
  { signal }: CheckContext,
): Promise<CheckResult> {
  const { hostname } = new URL(url);
  const [host, port] = native === undefined ? [hostname, NATIVE_PORT] : hostPort(native);
  const lookedAt = `${host}:${port}`;
  const fault = await connects(host, port, signal);
  if (fault === undefined) return { state: 'ok', lookedAt, found: 'the native port takes connections' };
  const remedy =
    'Only clickhouse-client needs it: through a TLS proxy it is another name on port 443; set `native` to it, or let it be.';
  return { state: 'warn', lookedAt, found: `the native port cannot be reached (${fault})`, remedy };
}

function hostPort(text: string): [string, number] {
  const { hostname, port } = new URL(`tcp://${text}`);
  return [hostname, Number(port)];
}

function connects(host: string, port: number, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: host.replace(/^\[|\]$/g, ''), port, timeout: CONNECT_MS, signal });
    const end = (fault?: string) => {
      socket.destroy();
      resolve(fault);
    };
    socket.once('connect', () => end());
    socket.once('timeout', () => end(`nothing within ${CONNECT_MS / 1_000} s`));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
  });
}

async function inspect(
  options: ColumnarOptions,
  lookedAt: string,
  { dataDir, signal }: CheckContext,
): Promise<Inspection | CheckResult> {
  try {
    return await askDatabase<Inspection>('drift', { seconds: SECONDS }, { dataDir, signal }, options);
  } catch (error) {
    if (!isCoded(error)) throw error;
    const state = error.code === 'HF_COLUMNAR_NOT_RUNNING' ? 'unknown' : 'fail';
    return { state, lookedAt, found: error.what, remedy: error.remedy };
  }
}
