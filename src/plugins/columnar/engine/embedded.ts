import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@clickhouse/client';
import type { QueryParameter } from '../../../core/contracts/columnar-database.ts';
import { endsWithin, unlessAborted } from '../../../core/host/deadline.ts';
import { ColumnarError } from '../errors.ts';
import {
  ANSWER_FORMAT,
  type Batch,
  type Bounds,
  type Engine,
  OBJECT_SETTINGS,
  Pool,
  type Reading,
  readOnlySettings,
} from './engine.ts';
import { type EngineSession, type Opened, openFolder, set } from './folder.ts';
import { EMBEDDED_DATABASE } from './grants.ts';
import { WriteCheck, type WriteCheckAccess } from './write-check.ts';

const ASK_QUEUE = 16;
const CLOSE_MS = 5_000;
/** A batch is parsed and written by one thread: it is too small to be worth more. */
const INSERT_SETTINGS = { input_format_parallel_parsing: 0, max_threads: 1 } as const;

/**
 * ClickHouse inside this process (chdb). One folder a process, one process a folder; a connection runs one query at a
 * time; queries run off the main thread. Abandoning a query does not stop it, so it is killed by the comment that marks it.
 *
 * The first query or insert opens it, and after a failure the next one does: another process may have had the folder. An
 * open folder stays open, because closing it frees no memory.
 */
export class EmbeddedEngine implements Engine {
  readonly kind = 'embedded';
  readonly place: string;
  readonly #mayOpen: Promise<void>;
  readonly #backups: string | undefined;
  #opening: Promise<Opened> | undefined;
  #sessions: readonly EngineSession[] = [];
  readonly #askPool = new Pool([0], ASK_QUEUE);
  readonly #writeCheck = new WriteCheck();
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  /**
   * @param folder absolute path; made with mode 0700 when it is not there
   * @param mayOpen work waits for it: loading the engine takes the main thread some 0.2 s, which nothing at a start should wait for
   * @param backups absolute path of the folder that backups may be written to; none can be made without it
   */
  constructor(folder: string, mayOpen: Promise<void> = Promise.resolve(), backups?: string) {
    this.place = folder;
    this.#mayOpen = mayOpen;
    this.#backups = backups;
  }

  /** One that is open already. @throws HF_COLUMNAR_ENGINE_MISSING, HF_COLUMNAR_FOLDER */
  static async open(folder: string, backups?: string): Promise<EmbeddedEngine> {
    const engine = new EmbeddedEngine(folder, undefined, backups);
    await engine.#opened(engine.#closing.signal);
    return engine;
  }

  async read(
    sql: string,
    parameters: Readonly<Record<string, QueryParameter>>,
    bounds: Bounds,
  ): Promise<string> {
    return this.#onOwn(bounds, async ({ client }, mark) => {
      const answer = await client.query({
        query: mark + sql,
        query_params: { ...parameters },
        format: ANSWER_FORMAT,
      });
      return answer.text();
    });
  }

  async command(sql: string, bounds: Bounds): Promise<void> {
    await this.#onOwn(bounds, ({ client }, mark) => client.command({ query: mark + sql }));
  }

  async insert({ table, columns, body, token }: Batch, bounds: Bounds): Promise<void> {
    const settings = {
      ...INSERT_SETTINGS,
      ...(!columns && OBJECT_SETTINGS),
      ...(token !== undefined && { insert_deduplication_token: token }),
    };
    // Bytes as they are: through the client's own insert the batch would be copied on the main thread.
    await this.#onOwn(bounds, async ({ connection, client }, mark) => {
      const batch = columns
        ? ({ table, columns, values: body, format: 'JSONCompactEachRow', settings } as const)
        : ({ table, values: body, format: 'JSONEachRow', settings } as const);
      await this.#writeCheck.insert(table, accessOf(client, mark), async () => {
        await connection.chdb.rawInsert(batch).catch((error) => {
          throw withEngineCode(error);
        });
      });
    });
  }

  ask(sql: string, reading: Reading, bounds: Bounds): Promise<string> {
    return this.#onReadOnly(reading, bounds, async ({ client }, mark) =>
      // Not the client's own format option: a comment at the statement's end would swallow it.
      (await client.query({ query: `${mark}${sql}\n`, format: ANSWER_FORMAT })).text(),
    );
  }

  async syntaxTree(sql: string, bounds: Bounds): Promise<string> {
    return this.#onReadOnly(undefined, bounds, async ({ connection }, mark) => {
      const answer = await connection.chdb
        .queryAsync(`${mark}EXPLAIN AST ${sql}`, { format: ANSWER_FORMAT })
        .catch((error) => {
          throw withEngineCode(error);
        });
      return answer.text();
    });
  }

  /** Uses a connection of its own, which is closed after it, so that its settings cannot affect another query. */
  async #onReadOnly(
    reading: Reading | undefined,
    bounds: Bounds,
    run: (session: EngineSession, mark: string) => Promise<string>,
  ): Promise<string> {
    const signal = AbortSignal.any([bounds.signal, this.#closing.signal]);
    const { open } = await this.#opened(signal);
    const permit = await this.#askPool.acquire(signal);
    const mark = newMark();
    const session = open();
    const { client } = session;
    const work = (async () => {
      await client.command({ query: `USE ${EMBEDDED_DATABASE}` });
      await set(client, readOnlySettings(reading, bounds.seconds));
      return run(session, mark);
    })();
    return this.#watch(work, mark, open, signal, async () => {
      await client.close();
      this.#askPool.release(permit);
    });
  }

  /** There is no connection that could be lost. */
  reconnect(): void {}

  async close(): Promise<void> {
    this.#closing.abort(
      new ColumnarError('HF_COLUMNAR_UNREACHABLE', { place: this.place, reason: 'it is being closed' }),
    );
    // A connection with a query under way cannot be closed; the process ends nevertheless.
    if (!(await endsWithin(CLOSE_MS, Promise.allSettled([...this.#running])))) return;
    for (const { client } of this.#sessions) await client.close();
    if (this.#sessions.length > 0) (await this.#opening)?.anchor?.close();
  }

  /** @throws HF_COLUMNAR_ENGINE_MISSING, HF_COLUMNAR_FOLDER; the signal's reason */
  #opened(signal: AbortSignal): Promise<Opened> {
    this.#opening ??= this.#open().catch((error) => {
      this.#opening = undefined;
      throw error;
    });
    return unlessAborted(this.#opening, signal);
  }

  async #open(): Promise<Opened> {
    await this.#mayOpen;
    this.#closing.signal.throwIfAborted();
    const opened = await openFolder(this.place, this.#backups);
    this.#sessions = opened.sessions;
    const [first] = opened.sessions;
    if (first) await this.#writeCheck.begin(accessOf(first.client, newMark()));
    return opened;
  }

  async #onOwn<T>(bounds: Bounds, work: (session: EngineSession, mark: string) => Promise<T>): Promise<T> {
    const signal = AbortSignal.any([bounds.signal, this.#closing.signal]);
    const { own, open } = await this.#opened(signal);
    const session = await own.acquire(signal);
    const mark = newMark();
    const running = (async () => {
      if (session.seconds !== bounds.seconds) {
        await set(session.client, { max_execution_time: bounds.seconds });
        session.seconds = bounds.seconds;
      }
      return work(session, mark);
    })();
    return this.#watch(running, mark, open, signal, () => own.release(session));
  }

  /** @param release called when the engine has ended the query, which may be long after it was abandoned */
  #watch<T>(
    work: Promise<T>,
    mark: string,
    open: () => EngineSession,
    signal: AbortSignal,
    release: () => void | Promise<void>,
  ): Promise<T> {
    const ended = work.then(release, release);
    this.#running.add(ended);
    void ended.finally(() => this.#running.delete(ended)).catch(() => {});
    return unlessAborted(work, signal, () => void kill(mark, open));
  }
}

function accessOf(client: ClickHouseClient, mark: string): WriteCheckAccess {
  return {
    async read(sql) {
      const answer = await client.query({ query: mark + sql, format: 'JSONCompactEachRow' });
      return answer.json<string[]>();
    },
    async command(sql) {
      await client.command({ query: mark + sql });
    },
  };
}

/** Best effort: if this fails, the query ends by its own limit of time. */
async function kill(mark: string, open: () => EngineSession): Promise<void> {
  let session: EngineSession | undefined;
  try {
    session = open();
    await session.client.command({ query: `KILL QUERY WHERE startsWith(query, '${mark.trim()}') ASYNC` });
  } catch {
    // It ended meanwhile, or the engine makes no more connections.
  } finally {
    await session?.client.close().catch(() => {});
  }
}

/** Adds the engine's code, which the client gives in another field; without it all errors of inserts would be alike. */
function withEngineCode(error: unknown): unknown {
  const { clickhouseCode, message } = error as { clickhouseCode?: number; message?: string };
  if (clickhouseCode === undefined) return error;
  return Object.assign(new Error(message, { cause: error }), {
    code: String(clickhouseCode),
    type: 'INSERT',
  });
}

function newMark(): string {
  return `/* holdfast ${randomUUID()} */ `;
}
