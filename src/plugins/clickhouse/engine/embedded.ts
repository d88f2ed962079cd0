import { randomUUID } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ClickHouseClient, createClient } from '@clickhouse/client';
import type { ChdbConnection } from 'chdb/connection';
import type { QueryParameter } from '../../../core/adapters/columnar-database.ts';
import { HoldfastError } from '../../../core/errors/index.ts';
import {
  ANSWER_FORMAT,
  type Batch,
  type Bounds,
  type Engine,
  laneSettings,
  OWN_SETTINGS,
} from './contract.ts';
import { Seats } from './seats.ts';

/**
 * Connections for our own work. Each query occupies one of the four threads that Node shares with file and name
 * look-ups while it runs, so two for us and one for what people ask leave one free; the engine itself computes on
 * threads of its own.
 */
const OWN_CONNECTIONS = 2;
const OWN_QUEUE = 256;
const LANE_QUEUE = 16;
const CLOSE_MS = 5_000;
/** A batch is parsed and written by one thread: it is too small to be worth more. */
const INSERT_SETTINGS = { input_format_parallel_parsing: 0, max_threads: 1 } as const;

/** One connection with what was set on it: the engine's settings stay for the session. */
interface Seat {
  readonly connection: ChdbConnection;
  readonly client: ClickHouseClient;
  seconds: number;
}

/**
 * ClickHouse inside this process (chdb). One folder a process, one process a folder; a connection runs one query at a
 * time; queries run off the main thread. Abandoning a query does not stop it, so it is killed by the mark it bears.
 *
 * It is opened by the first piece of work, and again by the next one where that failed: another process may have had the
 * folder. What is open stays open, for closing it gives no memory back.
 */
export class EmbeddedEngine implements Engine {
  readonly kind = 'embedded';
  readonly place: string;
  readonly #mayOpen: Promise<void>;
  #opening: Promise<Opened> | undefined;
  #seats: readonly Seat[] = [];
  readonly #lane = new Seats([0], LANE_QUEUE);
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  /**
   * @param folder absolute path; made with mode 0700 when it is not there
   * @param mayOpen work waits for it: loading the engine takes the main thread some 0.2 s, which nothing at a start should wait for
   */
  constructor(folder: string, mayOpen: Promise<void> = Promise.resolve()) {
    this.place = folder;
    this.#mayOpen = mayOpen;
  }

  /** One that is open already. @throws HF_COLUMNAR_ENGINE_MISSING, HF_COLUMNAR_FOLDER */
  static async open(folder: string): Promise<EmbeddedEngine> {
    const engine = new EmbeddedEngine(folder);
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
      ...(token !== undefined && { insert_deduplication_token: token }),
    };
    // Bytes as they are: through the client's own insert the batch would be copied on the main thread.
    await this.#onOwn(bounds, async ({ connection }) => {
      const batch = { table, columns, values: body, format: 'JSONCompactEachRow', settings } as const;
      await connection.chdb.rawInsert(batch).catch((error) => {
        throw told(error);
      });
    });
  }

  /** On a connection of its own, which ends with it: nothing that was set or left on it can meet another query. */
  async ask(sql: string, rows: number, bounds: Bounds): Promise<string> {
    const signal = AbortSignal.any([bounds.signal, this.#closing.signal]);
    const { open } = await this.#opened(signal);
    const turn = await this.#lane.take(signal);
    const mark = newMark();
    const { client } = open();
    const work = (async () => {
      await set(client, laneSettings(rows, bounds.seconds));
      // Not the client's own format option: a comment at the statement's end would swallow it.
      return (await client.query({ query: `${mark}${sql}\n`, format: ANSWER_FORMAT })).text();
    })();
    return this.#watch(work, mark, open, signal, async () => {
      await client.close();
      this.#lane.give(turn);
    });
  }

  /** There is nothing in between that could be lost. */
  reconnect(): void {}

  async close(): Promise<void> {
    this.#closing.abort(
      new HoldfastError('HF_COLUMNAR_UNREACHABLE', { place: this.place, reason: 'it is being closed' }),
    );
    const over = await Promise.race([
      Promise.allSettled([...this.#running]).then(() => true),
      new Promise<false>((resolve) => setTimeout(resolve, CLOSE_MS, false).unref()),
    ]);
    // A connection with a query under way cannot be closed; the process ends all the same.
    if (over) for (const { client } of this.#seats) await client.close();
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
    const opened = await openFolder(this.place);
    this.#seats = opened.seats;
    return opened;
  }

  async #onOwn<T>(bounds: Bounds, work: (seat: Seat, mark: string) => Promise<T>): Promise<T> {
    const signal = AbortSignal.any([bounds.signal, this.#closing.signal]);
    const { own, open } = await this.#opened(signal);
    const seat = await own.take(signal);
    const mark = newMark();
    const running = (async () => {
      if (seat.seconds !== bounds.seconds) {
        await set(seat.client, { max_execution_time: bounds.seconds });
        seat.seconds = bounds.seconds;
      }
      return work(seat, mark);
    })();
    return this.#watch(running, mark, open, signal, () => own.give(seat));
  }

  /** @param release once the engine has really ended it, which may be long after it was given up */
  #watch<T>(
    work: Promise<T>,
    mark: string,
    open: () => Seat,
    signal: AbortSignal,
    release: () => void | Promise<void>,
  ): Promise<T> {
    const ended = work.then(release, release);
    this.#running.add(ended);
    void ended.finally(() => this.#running.delete(ended)).catch(() => {});
    return unlessAborted(work, signal, () => void kill(mark, open()));
  }
}

/** An open folder. */
interface Opened {
  readonly open: () => Seat;
  readonly seats: readonly Seat[];
  readonly own: Seats<Seat>;
}

/** @throws HF_COLUMNAR_ENGINE_MISSING, HF_COLUMNAR_FOLDER */
async function openFolder(folder: string): Promise<Opened> {
  const { createChdbConnection } = await load();
  const open = (): Seat => {
    const connection = createChdbConnection({ path: folder });
    // Both packages bring the same types, each its own copy.
    return { connection, client: createClient({ connection: connection as never }), seconds: 0 };
  };
  const seats: Seat[] = [];
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    chmodSync(folder, 0o700);
    while (seats.length < OWN_CONNECTIONS) seats.push(open());
    for (const { client } of seats) await set(client, OWN_SETTINGS);
  } catch (error) {
    for (const { client } of seats) await client.close();
    throw new HoldfastError(
      'HF_COLUMNAR_FOLDER',
      { folder, reason: whyNot(folder, error) },
      { cause: error },
    );
  }
  return { open, seats, own: new Seats(seats, OWN_QUEUE) };
}

/** The engine itself says on standard error why it does not open a folder, and to us only that it does not. */
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

async function kill(mark: string, { client }: Seat): Promise<void> {
  try {
    await client.command({ query: `KILL QUERY WHERE startsWith(query, '${mark.trim()}') ASYNC` });
  } catch {
    // It ended meanwhile, or ends by its own limit.
  } finally {
    await client.close();
  }
}

/** @param giveUp called when the signal is aborted first, with whose reason the result then rejects */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal, giveUp = () => {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      reject(signal.reason);
      giveUp();
    };
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
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
  return new HoldfastError('HF_COLUMNAR_ENGINE_MISSING', { reason }, { cause: error });
}

/** By the engine's code, as the client tells it; without, an insert's errors would all be alike. */
function told(error: unknown): unknown {
  const { clickhouseCode, message } = error as { clickhouseCode?: number; message?: string };
  if (clickhouseCode === undefined) return error;
  return Object.assign(new Error(message, { cause: error }), {
    code: String(clickhouseCode),
    type: 'INSERT',
  });
}

async function set(
  client: ClickHouseClient,
  settings: Readonly<Record<string, number | string>>,
): Promise<void> {
  for (const [name, value] of Object.entries(settings)) {
    await client.command({ query: `SET ${name} = ${typeof value === 'number' ? value : `'${value}'`}` });
  }
}

function newMark(): string {
  return `/* holdfast ${randomUUID()} */ `;
}
