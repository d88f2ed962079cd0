import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import type { ChdbConnection } from 'chdb/connection';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import { ColumnarError } from '../errors.ts';
import { OWN_SETTINGS, Pool } from './engine.ts';
import { EMBEDDED_DATABASE, grantsArgument } from './grants.ts';

/**
 * Connections for our own work. Each query occupies one of the four threads that Node shares with file and name
 * look-ups while it runs, so two for us and one for people's queries leave one free; the engine itself computes on
 * threads of its own.
 */
const OWN_CONNECTIONS = 2;
const OWN_QUEUE = 256;

/** One connection with what was set on it: the engine's settings stay for the session. */
export interface EngineSession {
  readonly connection: ChdbConnection;
  readonly client: ClickHouseClient;
  /** Longest time of a query, as it is set now; 0 for none. */
  seconds: number;
}

/** An open folder. */
export interface Opened {
  /** Makes one more connection. */
  readonly open: () => EngineSession;
  readonly sessions: readonly EngineSession[];
  readonly own: Pool<EngineSession>;
  /** The first connection, whose arguments count for all others. */
  readonly anchor?: { close(): void } | undefined;
}

/**
 * Loads the engine and opens a folder.
 *
 * @param folder absolute path; made with mode 0700 when it is not there
 * @param backups absolute path of the folder that the engine may write backups to
 * @throws HF_COLUMNAR_ENGINE_MISSING, HF_COLUMNAR_FOLDER
 */
export async function openFolder(folder: string, backups?: string): Promise<Opened> {
  const { createChdbConnection } = await load();
  const open = (): EngineSession => {
    const connection = createChdbConnection({ path: folder });
    // Assigned and not passed: each package has its own copy of the same types.
    const config: Parameters<typeof createClient>[0] = {};
    Object.assign(config, { connection });
    return { connection, client: createClient(config), seconds: 0 };
  };
  const sessions: EngineSession[] = [];
  let anchor: Opened['anchor'];
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
    anchor = await start(folder, backups);
    while (sessions.length < OWN_CONNECTIONS) sessions.push(open());
    const [first] = sessions;
    if (first) await makeDatabase(first.client);
    for (const { client } of sessions) {
      await client.command({ query: `USE ${EMBEDDED_DATABASE}` });
      await set(client, OWN_SETTINGS);
    }
  } catch (error) {
    for (const { client } of sessions) await client.close();
    anchor?.close();
    throw new ColumnarError(
      'HF_COLUMNAR_FOLDER',
      { folder, reason: whyNot(folder, error) },
      { cause: error },
    );
  }
  return { open, sessions, own: new Pool(sessions, OWN_QUEUE), anchor };
}

/** Only the connection that starts the engine can give it these. */
async function start(folder: string, backups: string | undefined): Promise<{ close(): void }> {
  const { Session } = await import('chdb');
  const mayBackUp = backups === undefined ? [] : [`--backups.allowed_path=${backups}`];
  return new Session(folder, { connectionArgs: [grantsArgument(folder), ...mayBackUp] });
}

/** Versions before 0.2.0 kept the tables in `default`; each is moved at once, with its rows. */
async function makeDatabase(client: ClickHouseClient): Promise<void> {
  await client.command({ query: `CREATE DATABASE IF NOT EXISTS ${EMBEDDED_DATABASE} ENGINE = Atomic` });
  const answer = await client.query({
    query: `SELECT name FROM system.tables WHERE database = 'default' AND engine LIKE '%MergeTree' AND match(name, '^[A-Za-z_][A-Za-z0-9_]*$')
            AND name NOT IN (SELECT name FROM system.tables WHERE database = '${EMBEDDED_DATABASE}')`,
    format: 'JSONCompactEachRow',
  });
  for (const [name] of await answer.json<[string]>())
    await client.command({ query: `RENAME TABLE default.${name} TO ${EMBEDDED_DATABASE}.${name}` });
}

/** The engine writes to standard error why it does not open a folder; its error only says that it does not. */
function whyNot(folder: string, error: unknown): string {
  const holder = holderOf(folder);
  if (holder !== undefined) return `process ${holder} has it open already`;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== undefined && /^E[A-Z]+$/.test(code)) return `${code} at ${message.split(' at ').at(-1)}`;
  return 'no process here has it open, so it is damaged or of a newer engine, which said on standard error what it met';
}

/** The process that has a folder open, by the file that the engine leaves in it while it has. */
function holderOf(folder: string): string | undefined {
  try {
    const [, pid] = /^PID: (\d+)$/m.exec(readFileSync(join(folder, 'status'), 'utf8')) ?? [];
    return pid !== undefined && Number(pid) !== process.pid && existsSync(`/proc/${pid}`) ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Sets what holds for a connection from here on. */
export async function set(
  client: ClickHouseClient,
  settings: Readonly<Record<string, number | string>>,
): Promise<void> {
  for (const [name, value] of Object.entries(settings)) {
    const text = typeof value === 'number' ? value : `'${value.replace(/[\\']/g, '\\$&')}'`;
    await client.command({ query: `SET ${name} = ${text}` });
  }
}

/**
 * Whether the engine could be loaded, without loading it.
 *
 * @throws HF_COLUMNAR_ENGINE_MISSING
 */
export function findEngine(): void {
  try {
    import.meta.resolve('chdb/connection');
  } catch (error) {
    throw missing(error);
  }
}

/** @throws HF_COLUMNAR_ENGINE_MISSING */
async function load(): Promise<typeof import('chdb/connection')> {
  try {
    return await import('chdb/connection');
  } catch (error) {
    throw missing(error);
  }
}

function missing(error: unknown): HoldfastError {
  const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
  const reason = text.replace(/\.$/, '');
  return new ColumnarError('HF_COLUMNAR_ENGINE_MISSING', { reason }, { cause: error });
}
