import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client';
import type { QueryParameter } from '../../../core/contracts/columnar-database.ts';
import { unlessAborted } from '../../../core/host/deadline.ts';
import { ColumnarError } from '../errors.ts';
import {
  ANSWER_FORMAT,
  type Batch,
  type Bounds,
  type Engine,
  OBJECT_SETTINGS,
  OWN_SETTINGS,
  Pool,
  type Reading,
  readOnlySettings,
} from './engine.ts';

export interface RemoteOptions {
  /** `http:` or `https:`, without credentials. */
  readonly url: string;
  readonly database: string;
  readonly user: string;
  /** Read when the connection is (again) made; it is kept in memory only. @throws HF_CONFIG_SECRET_* */
  readonly password: (signal: AbortSignal) => Promise<string | undefined>;
  /** PEM of the authorities that are trusted in place of the system's, read when the connection is (again) made. */
  readonly ca: () => Buffer | undefined;
}

/** Connections that are used at the same time; further queries wait. */
const CONNECTIONS = 6;
const OWN_QUEUE = 256;
const ASK_CONNECTIONS = 2;
const ASK_QUEUE = 16;
/** Each call has its own time limit; this only disables the client's own, shorter one. */
const REQUEST_MS = 10 * 60_000;
/** Below the shortest that servers keep an idle connection: 3 s before version 23.11. */
const IDLE_MS = 2_000;

/** The oldest ClickHouse that the client library supports: its table of versions says so. */
const LEAST_VERSION = { year: 24, month: 8 } as const;

/** A client with the calls that use it. */
interface Connected {
  readonly client: ClickHouseClient;
  running: number;
  /** It is closed after its last call. */
  isRetired: boolean;
}

/** A ClickHouse server elsewhere, over HTTP, plain or by TLS. */
export class RemoteEngine implements Engine {
  readonly kind = 'remote';
  readonly place: string;
  readonly #options: RemoteOptions;
  readonly #ownPool = new Pool(
    Array.from({ length: CONNECTIONS }, (_, session) => session),
    OWN_QUEUE,
  );
  readonly #askPool = new Pool(
    Array.from({ length: ASK_CONNECTIONS }, (_, session) => session),
    ASK_QUEUE,
  );
  readonly #closing = new AbortController();
  #connected: Promise<Connected> | undefined;
  /** The signal of the call that makes the connection. */
  #connectsBy: AbortSignal | undefined;

  constructor(options: RemoteOptions) {
    this.#options = options;
    this.place = new URL(options.url).host;
  }

  read(sql: string, parameters: Readonly<Record<string, QueryParameter>>, bounds: Bounds): Promise<string> {
    return this.#on(this.#ownPool, bounds, async (client, abort_signal) => {
      const answer = await client.query({
        query: sql,
        query_params: { ...parameters },
        format: ANSWER_FORMAT,
        clickhouse_settings: {
          ...OWN_SETTINGS,
          max_execution_time: bounds.seconds,
          wait_end_of_query: 1, // else an error half-way comes after a 200
          cancel_http_readonly_queries_on_client_close: 1,
        },
        abort_signal,
      });
      return answer.text();
    });
  }

  async command(sql: string, bounds: Bounds): Promise<void> {
    await this.#on(this.#ownPool, bounds, (client, abort_signal) =>
      client.command({
        query: sql,
        clickhouse_settings: { max_execution_time: bounds.seconds, wait_end_of_query: 1 },
        abort_signal,
      }),
    );
  }

  async insert({ table, columns, body, token }: Batch, bounds: Bounds): Promise<void> {
    const into = columns
      ? `(${columns.map((name) => `\`${name}\``).join(', ')}) FORMAT JSONCompactEachRow`
      : 'FORMAT JSONEachRow';
    await this.#on(this.#ownPool, bounds, async (client, abort_signal) => {
      const { stream } = await client.exec({
        query: `INSERT INTO ${table} ${into}`,
        values: Readable.from([body], { objectMode: false }),
        clickhouse_settings: {
          ...OWN_SETTINGS,
          ...(!columns && OBJECT_SETTINGS),
          max_execution_time: bounds.seconds,
          wait_end_of_query: 1,
          async_insert: 0,
          ...(token !== undefined && { insert_deduplication_token: token }),
        },
        abort_signal,
      });
      // The answer is empty, but only reading it frees the connection.
      for await (const _ of stream);
    });
  }

  /** The settings of a user who may only read (`readonly = 2`) cannot be changed, and need not be. */
  async ask(sql: string, reading: Reading, bounds: Bounds): Promise<string> {
    const { readonly, allow_ddl, ...limits } = readOnlySettings(reading, bounds.seconds);
    try {
      return await this.#ask(sql, { ...limits, allow_ddl, readonly }, bounds);
    } catch (error) {
      if (!(error instanceof Error) || !/Cannot modify '(readonly|allow_ddl)' setting/.test(error.message))
        throw error;
      return this.#ask(sql, limits, bounds);
    }
  }

  /** The format is given beside the query, because behind it it would be a part of the tree. */
  syntaxTree(sql: string, bounds: Bounds): Promise<string> {
    return this.#on(this.#askPool, bounds, async (client, abort_signal) => {
      const { stream } = await client.exec({
        query: `EXPLAIN AST ${sql}`,
        clickhouse_settings: {
          max_execution_time: bounds.seconds,
          wait_end_of_query: 1,
          default_format: ANSWER_FORMAT,
        },
        abort_signal,
      });
      return text(stream);
    });
  }

  #ask(sql: string, settings: Readonly<Record<string, number | string>>, bounds: Bounds): Promise<string> {
    return this.#on(this.#askPool, bounds, async (client, abort_signal) => {
      const answer = await client.query({
        query: `${sql}\n`,
        format: ANSWER_FORMAT,
        clickhouse_settings: {
          ...settings,
          wait_end_of_query: 1,
          cancel_http_readonly_queries_on_client_close: 1,
        },
        abort_signal,
      });
      return answer.text();
    });
  }

  /** Calls under way end on the connection that they began on: cutting them off would look like a fault of the server. */
  reconnect(): void {
    const connected = this.#connected;
    this.#connected = undefined;
    connected
      ?.then(async (made) => {
        made.isRetired = true;
        if (made.running === 0) await made.client.close();
      })
      .catch(() => {});
  }

  async close(): Promise<void> {
    this.#closing.abort(new Error('it is being closed'));
    const connected = this.#connected;
    this.#connected = undefined;
    await connected?.then(({ client }) => client.close()).catch(() => {});
  }

  async #on<T>(
    sessions: Pool<number>,
    bounds: Bounds,
    work: (client: ClickHouseClient, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const signal = AbortSignal.any([bounds.signal, this.#closing.signal]);
    const session = await sessions.acquire(signal);
    try {
      let connected = await this.#connectFor(signal, bounds.seconds);
      while (connected.isRetired) connected = await this.#connectFor(signal, bounds.seconds);
      return await this.#use(connected, (client) => work(client, signal));
    } catch (error) {
      // The client's own message says only that the call was aborted.
      signal.throwIfAborted();
      throw error;
    } finally {
      sessions.release(session);
    }
  }

  async #use<T>(connected: Connected, work: (client: ClickHouseClient) => Promise<T>): Promise<T> {
    connected.running += 1;
    try {
      return await work(connected.client);
    } finally {
      connected.running -= 1;
      if (connected.isRetired && connected.running === 0) await connected.client.close().catch(() => {});
    }
  }

  /** Several calls may wait for one connection; each gives up by its own signal, and none because another gave up. */
  async #connectFor(signal: AbortSignal, seconds: number): Promise<Connected> {
    for (;;) {
      signal.throwIfAborted();
      const connecting = this.#connect(signal, seconds);
      const by = this.#connectsBy;
      try {
        return await unlessAborted(connecting, signal);
      } catch (error) {
        if (signal.aborted || by?.aborted !== true) throw error;
      }
    }
  }

  #connect(signal: AbortSignal, seconds: number): Promise<Connected> {
    if (!this.#connected) {
      const connected = this.#make(signal, seconds).catch((error) => {
        if (this.#connected === connected) this.#connected = undefined;
        throw error;
      });
      this.#connected = connected;
      this.#connectsBy = signal;
    }
    return this.#connected;
  }

  async #make(signal: AbortSignal, seconds: number): Promise<Connected> {
    const { url, database, user, password, ca } = this.#options;
    const secret = await password(signal);
    const authorities = ca();
    const client = createClient({
      url,
      database,
      username: user,
      password: secret ?? '',
      application: 'holdfast',
      request_timeout: REQUEST_MS,
      max_open_connections: CONNECTIONS + ASK_CONNECTIONS,
      keep_alive: { idle_socket_ttl: IDLE_MS },
      log: { level: ClickHouseLogLevel.OFF },
      ...(authorities !== undefined && { tls: { ca_cert: authorities } }),
    });
    try {
      await this.#checkVersion(client, signal, seconds);
    } catch (error) {
      await client.close();
      throw error;
    }
    return { client, running: 0, isRetired: false };
  }

  /**
   * Older versions lack settings and formats that every query of ours has, and refuse them in a form that the client
   * cannot read. So this query uses none of them.
   *
   * @throws HF_COLUMNAR_OLD
   */
  async #checkVersion(
    client: ClickHouseClient,
    abort_signal: AbortSignal,
    max_execution_time: number,
  ): Promise<void> {
    const { stream } = await client.exec({
      query: 'SELECT version()',
      clickhouse_settings: { max_execution_time },
      abort_signal,
    });
    const version = (await text(stream)).trim();
    const [, year, month] = /^(\d+)\.(\d+)(?:\.|$)/.exec(version) ?? [];
    // The answer of a proxy is no version; the next query reports that error.
    if (year === undefined) return;
    const { year: leastYear, month: leastMonth } = LEAST_VERSION;
    const isOld = Number(year) < leastYear || (Number(year) === leastYear && Number(month) < leastMonth);
    if (!isOld) return;
    const least = `${leastYear}.${leastMonth}`;
    throw new ColumnarError('HF_COLUMNAR_OLD', { place: this.place, version: version.slice(0, 40), least });
  }
}
