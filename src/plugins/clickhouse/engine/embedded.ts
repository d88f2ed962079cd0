import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync } from 'node:fs';
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

/** One connection with what was set on it: the engine's settings stay for the session. */
interface Seat {
  readonly connection: ChdbConnection;
  readonly client: ClickHouseClient;
  seconds: number;
}

/**
 * ClickHouse inside this process (chdb). One folder a process, one process a folder; a connection runs one query at a
 * time; queries run off the main thread. Abandoning a query does not stop it, so it is killed by the mark it bears.
 */
export class EmbeddedEngine implements Engine {
  readonly kind = 'embedded';
  readonly place: string;
  readonly #open: () => Seat;
  readonly #all: readonly Seat[];
  readonly #own: Seats<Seat>;
  readonly #lane = new Seats([0], LANE_QUEUE);
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  private constructor(folder: string, open: () => Seat, seats: readonly Seat[]) {
    this.place = folder;
    this.#open = open;
    this.#all = seats;
    this.#own = new Seats(seats, OWN_QUEUE);
  }

  /**
   * Loads the engine (half a second, some 150 MB) and opens its folder.
   *
   * @param folder absolute path; made with mode 0700 when it is not there
   * @throws HF_COLUMNAR_ENGINE_MISSING, HF_COLUMNAR_FOLDER
   */
  static async open(folder: string): Promise<EmbeddedEngine> {
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
      const text = error instanceof Error ? error.message : String(error);
      const reason = /Another server instance|only one active data directory/.test(text)
        ? 'a process has it open already'
        : (text.split('\n')[0] ?? text).replace(/\.$/, '');
      throw new HoldfastError('HF_COLUMNAR_FOLDER', { folder, reason }, { cause: error });
    }
    return new EmbeddedEngine(folder, open, seats);
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
    const settings = token === undefined ? {} : { insert_deduplication_token: token };
    // Bytes as they are: through the client's own insert the batch would be copied on the main thread.
    await this.#onOwn(bounds, ({ connection }) =>
      connection.chdb.rawInsert({ table, columns, values: body, format: 'JSONCompactEachRow', settings }),
    );
  }

  /** On a connection of its own, which ends with it: nothing that was set or left on it can meet another query. */
  async ask(sql: string, rows: number, bounds: Bounds): Promise<string> {
    const signal = AbortSignal.any([bounds.signal, this.#closing.signal]);
    const turn = await this.#lane.take(signal);
    const mark = newMark();
    const { client } = this.#open();
    const work = (async () => {
      await set(client, laneSettings(rows, bounds.seconds));
      // Not the client's own format option: a comment at the statement's end would swallow it.
      return (await client.query({ query: `${mark}${sql}\n`, format: ANSWER_FORMAT })).text();
    })();
    return this.#watch(work, mark, signal, async () => {
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
    if (!over) return;
    for (const { client } of this.#all) await client.close();
  }

  async #onOwn<T>(bounds: Bounds, work: (seat: Seat, mark: string) => Promise<T>): Promise<T> {
    const signal = AbortSignal.any([bounds.signal, this.#closing.signal]);
    const seat = await this.#own.take(signal);
    const mark = newMark();
    const running = (async () => {
      if (seat.seconds !== bounds.seconds) {
        await set(seat.client, { max_execution_time: bounds.seconds });
        seat.seconds = bounds.seconds;
      }
      return work(seat, mark);
    })();
    return this.#watch(running, mark, signal, () => this.#own.give(seat));
  }

  /** @param release once the engine has really ended it, which may be long after it was given up */
  #watch<T>(
    work: Promise<T>,
    mark: string,
    signal: AbortSignal,
    release: () => void | Promise<void>,
  ): Promise<T> {
    const ended = work.then(release, release);
    this.#running.add(ended);
    void ended.finally(() => this.#running.delete(ended)).catch(() => {});
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        reject(signal.reason);
        void this.#kill(mark);
      };
      if (signal.aborted) giveUp();
      signal.addEventListener('abort', giveUp, { once: true });
      work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
    });
  }

  async #kill(mark: string): Promise<void> {
    const { client } = this.#open();
    try {
      await client.command({ query: `KILL QUERY WHERE startsWith(query, '${mark.trim()}') ASYNC` });
    } catch {
      // It ended meanwhile, or ends by its own limit.
    } finally {
      await client.close();
    }
  }
}

/** @throws HF_COLUMNAR_ENGINE_MISSING */
async function load(): Promise<typeof import('chdb/connection')> {
  try {
    return await import('chdb/connection');
  } catch (error) {
    const text = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    throw new HoldfastError(
      'HF_COLUMNAR_ENGINE_MISSING',
      { reason: text.replace(/\.$/, '') },
      { cause: error },
    );
  }
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
